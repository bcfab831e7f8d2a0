// What an attempt uses now: from its cgroups if it has them, otherwise by adding up the
// supervisor's descendants in /proc.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "run/isolate/cgroup_policy.h"

namespace athanor {

struct UsageSample {
  uint64_t cpu_ns = 0;        // since the start; from /proc it forgets ended processes
  uint64_t memory_bytes = 0;  // cgroup: without file cache that can be dropped; /proc: RSS
  uint64_t memory_peak = 0;   // 0: unknown (never from /proc)
  uint64_t memory_limit = 0;  // 0: none
  int64_t processes = 0;      // without the supervisor
};

// `supervisor_pid` is the outer one. kNotFound: neither a cgroup nor the supervisor exists any
// more. Takes less than a millisecond with cgroups, a few with /proc on a busy machine; call it
// from a timer.
Result<UsageSample> SampleUsage(const AttemptCgroup& cgroup, int64_t supervisor_pid,
                                const std::string& proc = "/proc");

}  // namespace athanor
