// A host is one machine of an attempt, or a part of one: an agent looks after it, and runs one or
// more ranks there. The hosts of an attempt start and end together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "job/cause.h"

namespace athanor {

// How the script's process ended, from the supervisor's exit record.
struct ExitInfo {
  int32_t code = -1;  // 0-255, or -1 when a signal ended it
  int32_t signal = 0;
  bool oom_killed = false;
  bool disk_full = false;
  bool done_called = false;   // athanor.done() was called
  uint64_t memory_peak = 0;   // bytes
  uint64_t memory_limit = 0;  // 0: none
  int64_t cpu_ms = 0;
  uint32_t first_rank = 0;           // that fell first, over all hosts
  uint64_t log_dropped = 0;          // bytes beyond the cap
  std::string spawn_error;           // the program could not be started at all
  int64_t notice_ms = -1;            // from the notice to the end; -1: there was none
  int64_t saved_ms = -1;             // from the notice to the checkpoint written after it; -1: none
  std::vector<std::string> matched;  // log:PATTERNs of retry.on that its last lines hold
  std::string oom_child;             // "python3, pid 71": killed for memory; the script continued
  bool operator==(const ExitInfo&) const = default;
};

// What the queue reserved for a host of an attempt.
struct Placement {
  std::string backend = "process";
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;   // reserved; 0: none
  std::vector<uint32_t> gpus;  // device numbers
  // Not reserved: the GPUs it may use because no job had reserved them when it was placed, in the
  // order in which it sees them. Empty if `gpus` is not.
  std::vector<uint32_t> auto_gpus;
  bool simulated = false;  // the type is larger than this machine
  bool operator==(const Placement&) const = default;
  const std::vector<uint32_t>& visible_gpus() const { return gpus.empty() ? auto_gpus : gpus; }
};

// How one rank ended.
struct RankEnd {
  uint32_t rank = 0;  // over all hosts
  int32_t code = -1;  // 0-255, or -1 when a signal ended it
  int32_t signal = 0;
  int64_t ran_ms = 0;
  bool operator==(const RankEnd&) const = default;
};

// What a host uses, as its agent last said.
struct HostUsage {
  uint32_t cpu_percent = 0;  // of one CPU: 187 means 1.87 CPUs
  uint64_t memory_bytes = 0;
  uint64_t memory_peak = 0;
  bool operator==(const HostUsage&) const = default;
};

struct Host {
  std::string name;     // as the script sees it: "algo-1"
  std::string address;  // at which the other hosts reach it; empty: not known
  std::string handle;   // the back end's; empty until launched
  Placement placement;
  WallTime up;          // its agent came up
  WallTime started;     // its ranks started
  WallTime exited;      // its last rank ended
  WallTime over;        // what it wrote is stored, or it is lost; nothing more is expected
  WallTime last_seen;   // of its agent
  int64_t held_ms = 0;  // added up by its agent on the monotonic clock
  std::optional<ExitInfo> exit;
  Cause cause;                 // of its end, or why it is awaited
  std::vector<RankEnd> ranks;  // those that ended, in the order of their end
  HostUsage usage;
  bool operator==(const Host&) const = default;
};

// The first rank that fell, which decided the end of its attempt.
struct FirstFall {
  uint32_t host = 0;
  std::optional<uint32_t> rank;  // none: the host itself was lost, or could not be prepared
  WallTime at;
  Cause cause;
  bool operator==(const FirstFall&) const = default;
};

// "algo-1" for host 0.
std::string HostNameOf(uint32_t host);

}  // namespace athanor
