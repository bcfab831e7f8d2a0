// What limits an attempt gets, and what is said when it cannot have them. An
// attempt's cgroups lie below our own, at athanor/<attempt> of each hierarchy
// that holds a needed controller, so limits laid on us from outside hold for
// the attempt too. Nothing here fails: what is not possible ends up in `off`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/cgroup_driver.h"
#include "run/supervisor_plan.h"

namespace athanor {

struct CgroupLimits {
  uint64_t memory_bytes = 0;  // 0: not limited, only counted
  bool no_swap = true;        // memory_bytes counts swap too
  double cpus = 0;            // 0: not limited
  uint64_t pids = 32768;
};

struct AttemptCgroup {
  std::vector<CgroupJoin> joins;  // for SupervisorPlan::cgroups
  std::vector<std::string> off;   // "memory limit: ...; the job may use all of it"
  std::vector<std::string> lacks;  // controllers whose limit is not held, or whose count not kept

  bool Lacks(std::string_view controller) const;
  // The directory that has a controller and its version; null: none.
  const CgroupJoin* Find(std::string_view controller) const;
};

// `name` is one path component. Calling it again for the same attempt gives
// the same directories with the new limits.
AttemptCgroup PrepareAttemptCgroup(const CgroupDriver& driver, const std::string& name,
                                   const CgroupLimits& limits);
// The same directories after an agent's restart, as the plan kept them.
AttemptCgroup AttemptCgroupOf(const SupervisorPlan& plan);

// Makes `off` what a person reads. One line on what the job asked for and no cgroup holds:
// "limits: memory 4 GiB held by a watch (no cgroup for this user); CPUs not limited". Without any
// cgroup, one line says so, whatever was asked for, instead of one for each that could not be made.
void SummarizeOff(AttemptCgroup& cgroup, const CgroupLimits& asked);
// What would be said of a job that asks for all. For `ath check`: makes no cgroup and moves nobody.
std::string LimitsHere(const CgroupDriver& driver);

// Kills everything in it; succeeds when it is already gone.
Status KillAttemptCgroup(const AttemptCgroup& cgroup);
// After the supervisor ended. Also removes the folder `athanor` when it was the last.
Status RemoveAttemptCgroup(const AttemptCgroup& cgroup);

}  // namespace athanor
