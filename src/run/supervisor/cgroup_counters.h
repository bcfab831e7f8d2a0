// What the attempt's cgroups counted: OOM kills, peak memory, CPU time.
#pragma once

#include "run/supervisor/exit_record.h"
#include "run/supervisor/spawn.h"

namespace athanor::supervisor {

// Fills in what `cgroup` knows and leaves the rest of `end` as it is.
void AddCounters(const CgroupDir& cgroup, CgroupEnd* end);

}  // namespace athanor::supervisor
