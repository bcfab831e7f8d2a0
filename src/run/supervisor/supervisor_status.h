// What the supervisor reports while it runs: who it is (so that a restarted agent finds it again
// and never mistakes another process for it), and how its ranks started.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

// Identifies a process beyond doubt: pids are reused, and after a reboot start times are, too.
struct SupervisorStatus {
  int64_t pid = 0;          // as seen by the agent, outside the PID namespace
  int64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  std::string boot_id;

  bool operator==(const SupervisorStatus&) const = default;
};

struct RankStart {
  int64_t outer_pid = 0;  // as seen by the agent; 0: not known
  int64_t inner_pid = 0;  // as seen by the script; 0: not started
  // Why it was not started; 0 if it was. `step` is what failed: "exec", "interpreter", "chdir",
  // "cgroup", "uid", "rlimit"; `path` what it was about.
  int64_t spawn_errno = 0;
  std::string spawn_step;
  std::string spawn_path;

  bool operator==(const RankStart&) const = default;
};

struct StartedRecord {
  std::vector<RankStart> ranks;
  int64_t wall_ms = 0;
  int64_t boottime_ms = 0;
  std::vector<std::string> off;  // isolation this attempt does not have, a phrase each

  bool operator==(const StartedRecord&) const = default;
};

// The name of supervisor processes (/proc/PID/comm), by which they are recognised.
inline constexpr char kSupervisorName[] = "athanor-supervi";
// The same while a log waits for room on the disk: on a full disk no file could say so. At most 15
// bytes.
inline constexpr char kWaitsForRoomName[] = "ath-disk-full";

Result<std::string> SerializeStatus(const SupervisorStatus& status);
Result<SupervisorStatus> ParseStatus(std::string_view bytes);
Result<std::string> SerializeStarted(const StartedRecord& record);
Result<StartedRecord> ParseStarted(std::string_view bytes);

}  // namespace athanor
