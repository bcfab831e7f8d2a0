// FakeBackend is a cluster in memory, for tests and the simulation: machines that run the hosts of
// attempts, lose them, come back, or do not answer. It passes the same conformance suites as the
// real back ends. The owner decides what runs on a host: it is called when an agent starts and when
// everything of a host is ended.
//
// Threads: as Backend. Callbacks come from the calling thread, without the lock held.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/mutex.h"
#include "launch/backend.h"

namespace athanor {

class FakeBackend final : public Backend {
 public:
  struct World {
    // An agent starts for a host on `machine`; for a host that has lost its agent, again.
    std::function<void(const AttemptPlan& plan, size_t machine)> agent_started;
    // When this returns, nothing of the host may be running.
    std::function<void(AttemptId attempt, uint32_t host)> ended;
    // Whether a host cannot be started; empty: all can.
    std::function<bool(const AttemptPlan& plan)> refused;
  };
  // What happens to a call: done, not done and reported, or the answer is lost before or after it
  // was done.
  enum class Fate { kDone, kRefused, kRequestLost, kReplyLost };
  enum class Call { kLaunch, kPoll, kRelease };

  explicit FakeBackend(size_t machines, World world = {}, std::string name = "fake");

  std::string_view name() const override { return name_; }
  Result<std::string> Launch(const LaunchPlan& plan) override;
  std::vector<Result<std::vector<HostStatus>>> Poll(
      const std::vector<std::string>& handles) override;
  Status Release(const std::string& handle) override;

  // Called before every call; empty: all are done.
  void SetFates(std::function<Fate(Call)> fates);
  // What Poll says of a host whose agent runs, from now on: kPending, kEvicted, kEnded.
  void SetStatus(AttemptId attempt, uint32_t host, HostStatus status);
  void AgentEnded(AttemptId attempt, uint32_t host = 0);  // the script, or its exit record, stays
  void CrashMachine(size_t machine);    // what ran there is gone, and the back end knows it
  void RestoreMachine(size_t machine);  // up again, with nothing running
  void Reach(size_t machine, bool reachable);
  // Where a host of an attempt that was not released is, or was.
  std::optional<size_t> MachineOf(AttemptId attempt, uint32_t host = 0) const;
  bool up(size_t machine) const;

 private:
  struct Machine {
    bool up = true;
    bool reachable = true;
    size_t hosts = 0;
  };
  struct KnownHost {
    size_t machine = 0;
    bool agent = false;
    bool gone = false;  // its machine was lost, or it was ended
    HostStatus says;    // while its agent runs
  };
  using Known = std::vector<KnownHost>;
  Result<std::vector<HostStatus>> PollOne(const std::string& handle);
  Fate Ask(Call call) const;
  // The machines with the fewest hosts, one for each of `hosts`; less if none is up.
  Known Emptiest(size_t hosts) REQUIRES(mutex_);
  bool Answers(const KnownHost& host) const REQUIRES(mutex_) {
    return host.gone || machines_[host.machine].reachable;
  }

  const std::string name_;
  World world_;
  std::function<Fate(Call)> fates_;  // set before the first call
  mutable Mutex mutex_;
  std::vector<Machine> machines_ GUARDED_BY(mutex_);
  std::map<std::string, Known> attempts_ GUARDED_BY(mutex_);  // by handle
};

}  // namespace athanor
