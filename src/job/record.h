// JobRecord is what is known of a job now. `steer` alone changes it; everything
// else reads copies. Stored whole, as JSON made from the field table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/ids.h"
#include "job/spec.h"
#include "job/state.h"

namespace athanor {

// Why something is as it is: a class a program can switch on, and words for a person.
struct Cause {
  std::string kind;  // "out_of_memory", "user_stop", "python_exception": see job/causes.h
  std::string text;
  std::string hint;    // what to type next
  std::string detail;  // evidence: last frames, the requirement that failed; may be many lines
  bool operator==(const Cause&) const = default;
};

struct StopRequest {
  Cause cause;
  std::string who;
  WallTime at;
  std::chrono::milliseconds grace{120'000};
  bool operator==(const StopRequest&) const = default;
};

// How the script's process ended, from the supervisor's exit record.
struct ExitInfo {
  int32_t code = -1;   // 0-255, or -1 when a signal ended it
  int32_t signal = 0;
  bool oom_killed = false;
  bool disk_full = false;
  bool done_called = false;       // athanor.done() was called
  uint64_t memory_peak = 0;       // bytes
  uint64_t memory_limit = 0;      // 0: none
  int64_t cpu_ms = 0;
  uint32_t first_rank = 0;        // that fell first
  uint64_t log_dropped = 0;       // bytes beyond the cap
  std::string spawn_error;        // the program could not be started at all
  bool operator==(const ExitInfo&) const = default;
};

// What the queue reserved for an attempt.
struct Placement {
  std::string backend = "process";
  uint32_t cpu_millis = 0;
  uint64_t memory_bytes = 0;  // reserved; 0: none
  std::vector<uint32_t> gpus; // device numbers
  bool simulated = false;     // the type is larger than this machine
  bool operator==(const Placement&) const = default;
};

struct Attempt {
  AttemptId id;
  uint32_t number = 1;  // also the fencing number
  Placement placement;
  std::string handle;   // the back end's; empty until launched
  WallTime placed;
  WallTime prepared;    // the agent came up
  WallTime started;     // the script started; 0: never
  WallTime exited;      // the script ended
  WallTime ended;       // the room was given back
  int64_t held_ms = 0;  // added up by the agent on its monotonic clock
  int64_t setup_ms = 0; // of these, before the script started
  std::optional<ExitInfo> exit;
  Cause cause;          // how it ended
  std::vector<std::string> off;  // isolation that this machine could not give
  bool operator==(const Attempt&) const = default;
};

// An output kept after the end: an archive or file in the object store.
struct Output {
  std::string name;  // "model.tar.gz", "output.tar.gz"
  std::string blob;  // sha256
  uint64_t bytes = 0;
  uint64_t files = 0;
  bool operator==(const Output&) const = default;
};

// The price in force when the job was submitted, in millionths of `currency` an hour.
struct PriceTag {
  int64_t micros_per_hour = 0;
  std::string currency = "USD";
  std::string source;  // "own machine", "catalogue 2026-08-22"
  bool operator==(const PriceTag&) const = default;
};

struct JobRecord {
  JobId id;
  std::string key;        // idempotency key
  std::string spec_hash;
  std::string user;
  JobSpec spec;
  JobState state = JobState::kQueued;
  WallTime created;
  WallTime updated;
  WallTime ended;          // 0 until terminal
  WallTime last_seen;      // of its agent
  uint64_t event_seq = 0;  // events so far
  Cause cause;             // of the state it is in: the reason for a wait, or for the end
  std::optional<StopRequest> stop;
  std::vector<Attempt> attempts;
  std::vector<Output> outputs;
  PriceTag price;
  bool simulated = false;
  std::string packages;    // blob: what `pip freeze` would say, for diff; empty if unknown
  std::string same_as;     // an earlier job of the same source, params and data
  std::string parent;      // job this one is a retry of

  bool operator==(const JobRecord&) const = default;
  const Attempt* current() const { return attempts.empty() ? nullptr : &attempts.back(); }
  Attempt* current() { return attempts.empty() ? nullptr : &attempts.back(); }
};

// Money of a job so far, in millionths: held seconds of all attempts at its frozen price.
int64_t CostMicros(const JobRecord& record);

}  // namespace athanor
