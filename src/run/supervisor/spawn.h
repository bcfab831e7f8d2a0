// Starts one rank: fork, cgroups, streams, limits, user, exec. A failure before or in exec is
// distinguished from a script that ran and failed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/io/fd.h"
#include "run/supervisor/supervisor_plan.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor::supervisor {

// One cgroup of the plan, opened before any mount. A v1 rank moves itself by `tasks`: a
// single-threaded process that writes "0" there skips the system-wide lock that makes the first
// write to cgroup.procs after a pause cost 4 to 6 ms. A v2 rank starts inside by CLONE_INTO_CGROUP.
struct CgroupDir {
  int version = 2;
  std::vector<std::string> controllers;
  UniqueFd dir;
  UniqueFd join;  // v1: tasks, v2: cgroup.procs (where clone3 is refused)
};

struct SpawnContext {
  const SupervisorPlan* plan = nullptr;
  const std::vector<CgroupDir>* cgroups = nullptr;
  std::string oom_score_adj;  // what a rank gets back; the supervisor's own is lower
};

// A rank between fork and exec.
struct Spawning {
  pid_t pid = 0;
  UniqueFd report;  // end of file: exec succeeded
  RankStart start;  // of one that could not even be forked
};

// In two steps, so that the ranks of a host start side by side and not one after the other.
Spawning BeginRank(const SpawnContext& context, const RankPlan& rank, int out_fd, int err_fd);
// Waits for its exec: the rank's pid in `inner_pid`, or the errno, step and path of what failed.
RankStart FinishRank(Spawning spawning);

}  // namespace athanor::supervisor
