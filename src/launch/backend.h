// A Backend runs the hosts of one job attempt somewhere: as local processes,
// in containers, under Slurm, or as Kubernetes pods. It moves no data, keeps
// no history and decides no retries: `steer` does, from what it reports.
//
// Threads: every call is safe from any thread and returns within seconds; long
// work is observed through Poll().
// Crash rule: all durable state is behind the handle, so a restarted server can
// Poll and Release what an earlier one launched.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/host.h"
#include "link/plan.h"

namespace athanor {

struct HostStatus {
  enum class State {
    kPending,    // accepted, and waits for the back end: `detail` has its reason
    kAlive,      // its agent runs
    kAgentGone,  // its agent died, but the script runs or left an exit record: Launch again
    kEvicted,    // it runs, and the back end takes it away at `deadline`
    kEnded,      // over; the back end knows how: `exit`
    kGone,       // nothing of it is left and it left no exit record
  };
  State state = State::kAlive;
  std::string detail;                // for a person
  std::optional<WallTime> deadline;  // of kEvicted; none: not known
  std::optional<ExitInfo> exit;      // of kEnded
};

// One attempt, as a plan for each of its hosts, by index. All have the same job, attempt and
// number.
struct LaunchPlan {
  std::vector<AttemptPlan> hosts;
  AttemptId attempt() const { return hosts.front().attempt; }
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "process"

  // Starts every host of the plan or none, and returns the handle. Idempotent on plan.attempt():
  // launching an attempt that runs succeeds, hosts that lost their agent get a new one, and no
  // rank is ever started twice. kExhausted: no room now. kInvalid: it will never fit.
  // kUnavailable: did not answer, and nothing is known to have started.
  virtual Result<std::string> Launch(const LaunchPlan& plan) = 0;

  // For each handle, one status per host, in host order. All in one call, because a cluster is
  // asked about everything at once. kNotFound: the back end has forgotten the attempt; the caller
  // treats it as lost, not as failed. kUnavailable: a host did not answer, which says nothing about
  // what runs there.
  virtual std::vector<Result<std::vector<HostStatus>>> Poll(
      const std::vector<std::string>& handles) = 0;

  // Ends what is left of the attempt, without grace, and drops its scratch space and limits. When
  // this succeeds, nothing of it is running. Idempotent: it succeeds for attempts that were
  // released or never launched. kUnavailable: a host did not answer; try again.
  virtual Status Release(const std::string& handle) = 0;
};

}  // namespace athanor
