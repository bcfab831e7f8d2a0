// HostWatch asks the back ends what became of the hosts of running attempts, and acts on it:
// another agent for a host that lost its own, an interruption for one that is taken away, and an
// end for one that is gone. Each second, with one call per back end under way and all its attempts
// in it, so that a slow back end delays no other.
//
// Silence is not death: a host is given up only when its back end proves that it is over, or has
// ended what was left. That holds, too, for a gang of which a part never came up, and for hosts
// that were not up yet when their attempt was to end.
//
// Threads: every method belongs to the executor's thread; calls of back ends run in pools.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "base/log.h"
#include "job/event.h"
#include "launch/backends.h"
#include "steer/live_attempt.h"
#include "steer/outbox.h"

namespace athanor {

// How long the hosts of a gang may be missing after the first one came up.
inline constexpr Millis kGangPatience = std::chrono::minutes(5);
// The same for an attempt that is to end, after the hosts that did come up have ended.
inline constexpr Millis kEndPatience = std::chrono::seconds(10);

class HostWatch {
 public:
  struct Parts {
    Executor& executor;
    const Clock& clock;
    Logger& log;
    const Backends& backends;
    MakePool make_pool;
    Outbox& outbox;
    LiveAttempts& attempts;
    std::function<std::vector<const JobRecord*>()> holding;  // jobs that hold room
    std::function<JobRecord*(JobId)> live;                   // null: over
    std::function<void(JobId, JobEvent)> apply;
    // The reason for a wait changed, in memory only.
    std::function<void(const JobRecord&)> tell;
  };
  explicit HostWatch(Parts parts);
  ~HostWatch();

  // Once a second.
  void Look();
  void Stop();

 private:
  struct Asked {
    AttemptId attempt;
    std::string handle;
  };
  void Ask(const Backends::Entry& at, std::vector<Asked> asked);
  void Answered(const Asked& asked, Millis since, const Result<std::vector<HostStatus>>& hosts);
  void HostIs(JobRecord& record, uint32_t index, const HostStatus& status,
              std::vector<uint32_t>& agents_gone);
  void Waits(JobRecord& record, Host& host, const HostStatus& status);
  void Starts(JobRecord& record, Host& host);
  void Evicted(const JobRecord& record, uint32_t index, const HostStatus& status);
  void Ended(const JobRecord& record, uint32_t index, const HostStatus& status);
  void LookForMissing(const JobRecord& record);
  // Ends what is left of the attempt; then `host` is lost, and the others with it.
  void GiveUp(const JobRecord& record, uint32_t host, const Cause& cause);
  JobRecord* Current(AttemptId attempt) const;

  Parts parts_;
  std::map<std::string, std::unique_ptr<Pool>> pools_;  // by back end, one thread each
  std::set<std::string> asking_;                        // back ends with a call under way
  bool stopped_ = false;
};

}  // namespace athanor
