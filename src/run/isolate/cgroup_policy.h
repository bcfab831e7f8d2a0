// Which limits an attempt gets, and what is reported if it cannot have them. An attempt's cgroups
// are below our own, at athanor/<attempt> of each hierarchy that has a needed controller, so limits
// that are set on us from outside also apply to the attempt. Nothing here fails: what is not
// possible ends up in `off`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/isolate/cgroup_driver.h"
#include "run/supervisor/supervisor_plan.h"

namespace athanor {

struct CgroupLimits {
  uint64_t memory_bytes = 0;  // 0: not limited, only counted
  bool no_swap = true;        // memory_bytes counts swap too
  double cpus = 0;            // 0: not limited
  uint64_t pids = 32768;
};

struct AttemptCgroup {
  std::vector<CgroupJoin> joins;   // for SupervisorPlan::cgroups
  std::vector<std::string> off;    // "memory limit: ...; the job may use all of it"
  std::vector<std::string> lacks;  // controllers without a working limit or count

  bool Lacks(std::string_view controller) const;
  // The directory that has a controller and its version; null: none.
  const CgroupJoin* Find(std::string_view controller) const;
};

// `name` is one path component. Calling it again for the same attempt returns the same directories
// with the new limits.
AttemptCgroup PrepareAttemptCgroup(const CgroupDriver& driver, const std::string& name,
                                   const CgroupLimits& limits);
// The same directories after a restart of the agent, as stored in the plan.
AttemptCgroup AttemptCgroupOf(const SupervisorPlan& plan);

// Rewrites `off` for people to read. One line says what the job asked for and no cgroup enforces:
// "limits: memory 4 GiB held by a watch (no cgroup for this user); CPUs not limited". Without any
// cgroup, one line says so, whatever was asked for, instead of one line for each cgroup that could
// not be created.
void SummarizeOff(AttemptCgroup& cgroup, const CgroupLimits& asked);
// What would be reported for a job that asks for everything. For `ath check`: creates no cgroup and
// moves no process.
std::string LimitsHere(const CgroupDriver& driver);

// Kills everything in it; succeeds if it is already gone.
Status KillAttemptCgroup(const AttemptCgroup& cgroup);
// After the supervisor ended. Also removes the folder `athanor` if it was the last.
Status RemoveAttemptCgroup(const AttemptCgroup& cgroup);

}  // namespace athanor
