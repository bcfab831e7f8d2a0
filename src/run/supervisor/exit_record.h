// The ExitRecord is the supervisor's final report about one attempt on one host: facts only,
// written once, complete and synced, even if the agent is gone and the disk is full. The reader
// decides what they mean ("out of memory", "user stop").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {

struct StreamEnd {
  int64_t written = 0;  // bytes of the file, including our notes
  int64_t dropped = 0;  // bytes the script wrote that are not in the file
  bool capped = false;
  int64_t write_errno = 0;  // last failed write that lost bytes (ENOSPC...); 0: none

  bool operator==(const StreamEnd&) const = default;
};

struct RankExit {
  // As in a shell: the script's own code, 128 + signal, 127 or 126 if it could not be started. -1:
  // it never ran and nothing is known.
  int64_t exit_code = -1;
  int64_t signal = 0;  // 0: it exited normally
  bool core = false;
  int64_t wall_ms = 0;
  int64_t cpu_us = 0;      // its own and of the children it waited for
  int64_t max_rss_kb = 0;  // largest of them
  RankStart start;
  StreamEnd out;
  StreamEnd err;      // all zero when both streams go to one file
  int64_t ended = 0;  // 1: the first of the ranks to end, 2: the second...; 0: not known

  bool operator==(const RankExit&) const = default;
};

// -1: the counter does not exist here. If the supervisor's own watch enforced the memory limit, its
// kills, its peak and its limit are here, as those of a cgroup would be.
struct CgroupEnd {
  int64_t oom_kills = -1;
  int64_t limit_hits = -1;  // v1 memory.failcnt, v2 "max" of memory.events
  int64_t memory_peak = -1;
  int64_t memory_limit = -1;
  int64_t cpu_ns = -1;

  bool operator==(const CgroupEnd&) const = default;
};

struct ExitRecord {
  std::vector<RankExit> ranks;
  int64_t first_failed_rank = -1;  // the first to end with a code other than 0
  bool fell_by_itself = false;     // before any stop was asked of the supervisor
  CgroupEnd cgroup;
  int64_t orphan_cpu_us = 0;  // of processes whose parent did not wait for them
  int64_t orphans = 0;
  bool disk_full = false;         // a log had no room when a rank failed, or to the end
  int64_t stop_signal = 0;        // first stop asked of the supervisor: SIGTERM, SIGUSR2; 0: none
  int64_t stop_to_end_ms = -1;    // from it to the end of the last rank
  bool killed = false;            // we sent SIGKILL to a rank (grace over, or SIGUSR2)
  bool leftovers_killed = false;  // processes outlived the last rank and the linger time
  int64_t oom_pid = 0;            // the watch killed it last, by the pid that the script sees
  std::string oom_name;
  std::string setup_error;  // why no rank was started; empty: they were
  std::string setup_code;   // name of its ErrorCode: "exhausted" is a full disk
  int64_t start_wall_ms = 0;
  int64_t end_wall_ms = 0;
  int64_t start_boottime_ms = 0;
  int64_t end_boottime_ms = 0;
  std::vector<std::string> off;

  bool operator==(const ExitRecord&) const = default;
};

Result<std::string> SerializeExit(const ExitRecord& record);
// kCorrupt: torn, unknown key, or not a record of this version.
Result<ExitRecord> ParseExit(std::string_view bytes);

}  // namespace athanor
