// FakeBackend is a cluster in memory, for tests and the simulation: hosts that run attempts, lose
// them, come back, or do not answer. It passes the same conformance suite as the real back ends.
// The owner decides what runs inside an attempt: it is called when an agent starts and when
// everything of an attempt is ended.
//
// Threads: as Backend. Callbacks come from the calling thread, without the lock held.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launch/backend.h"

namespace athanor {

class FakeBackend final : public Backend {
 public:
  struct World {
    // An agent starts on `host`; for an attempt that has lost its agent, again.
    std::function<void(const AttemptPlan& plan, size_t host)> agent_started;
    // When this returns, nothing of the attempt may be running.
    std::function<void(AttemptId attempt)> ended;
  };
  // What happens to a call: done, not done and reported, or the answer is lost before or after it
  // was done.
  enum class Fate { kDone, kRefused, kRequestLost, kReplyLost };
  enum class Call { kLaunch, kPoll, kRelease };

  explicit FakeBackend(size_t hosts, World world = {});

  std::string_view name() const override { return "fake"; }
  Result<std::string> Launch(const LaunchPlan& plan) override;
  std::vector<Result<std::vector<HostStatus>>> Poll(
      const std::vector<std::string>& handles) override;
  Status Release(const std::string& handle) override;

  // Called before every call; empty: all are done.
  void SetFates(std::function<Fate(Call)> fates);
  void AgentEnded(AttemptId attempt);  // the script, or its exit record, stays
  void CrashHost(size_t host);         // what ran there is gone, and the back end knows it
  void RestoreHost(size_t host);       // up again, with nothing running
  void Reach(size_t host, bool reachable);
  std::optional<size_t> HostOf(AttemptId attempt) const;
  bool up(size_t host) const;

 private:
  struct Host {
    bool up = true;
    bool reachable = true;
    size_t attempts = 0;
  };
  struct Known {
    size_t host = 0;
    bool agent = true;
    bool gone = false;
  };
  Result<std::vector<HostStatus>> PollOne(const std::string& handle);
  Fate Ask(Call call) const;
  std::optional<size_t> EmptiestHost() const;

  World world_;
  std::function<Fate(Call)> fates_;  // set before the first call
  mutable std::mutex mutex_;
  std::vector<Host> hosts_;                // GUARDED_BY(mutex_)
  std::map<std::string, Known> attempts_;  // by handle; GUARDED_BY(mutex_)
};

}  // namespace athanor
