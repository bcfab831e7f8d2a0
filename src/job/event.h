// What is reported about a job. Events are values; they are stored with their time and cause before
// anything acts on them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "job/ids.h"
#include "job/record.h"

namespace athanor {

struct Submitted {};
// The queue found room.
struct Placed {
  AttemptId attempt;
  Placement placement;                // of all hosts together
  std::string type = {};              // if it differs from the spec's
  int64_t micros_per_hour = -1;       // if it differs from the job's
  std::vector<Placement> hosts = {};  // empty: one, with `placement`
};
// The queue found no room: the reason and amount, stored when it changes.
struct Waiting {
  Cause cause;
};
struct Launched {
  AttemptId attempt;
  std::string handle;
};
struct LaunchFailed {
  AttemptId attempt;
  Cause cause;
  bool permanent = false;
};
// From the agent.
struct AgentUp {
  AttemptId attempt;
  uint32_t host = 0;
  std::string address = {};  // at which the other hosts reach it
};
struct PrepareFailed {
  AttemptId attempt;
  Cause cause;
  uint32_t host = 0;
};
struct ScriptStarted {
  AttemptId attempt;
  int64_t setup_ms = 0;
  std::vector<std::string> off;
  uint32_t host = 0;
};
struct ScriptEnded {
  AttemptId attempt;
  ExitInfo exit;
  Cause cause;  // classified by the agent, which can read the log
  uint32_t host = 0;
  std::vector<RankEnd> ranks = {};  // in the order of their end
};
// Outputs are stored and the agent is about to exit.
struct Uploaded {
  AttemptId attempt;
  std::vector<Output> outputs;
  Cause failure;  // kind empty unless the upload failed
  std::string packages;
  uint32_t host = 0;
};
// The back end proved that a host of the attempt is over although its agent never reported it.
struct HostLost {
  AttemptId attempt;
  Cause cause;
  uint32_t host = 0;
};
struct StopAsked {
  Cause cause;
  std::string who;
  std::chrono::milliseconds grace{120'000};
};
// The machine is being taken away: by a person, on purpose, or by the back end.
struct InterruptAsked {
  Cause cause;
  std::string who;
  std::chrono::milliseconds grace{120'000};
};
// The attempt starts from a checkpoint (or, with an empty id, from the beginning).
struct Resumed {
  AttemptId attempt;
  std::string checkpoint;
  std::optional<int64_t> step;
};
struct CheckpointKept {
  AttemptId attempt;
  CheckpointInfo checkpoint;
  IntervalAdvice advice;
};
struct RuleFired {
  AttemptId attempt;
  Firing firing;
};
// The max_wait of a spot job ran out.
struct WaitedTooLong {};
// A note in the job's history that changes no state ("the log was capped").
struct Noted {
  AttemptId attempt;
  Cause cause;
  uint32_t host = 0;
};

using JobEvent =
    std::variant<Submitted, Placed, Waiting, Launched, LaunchFailed, AgentUp, PrepareFailed,
                 ScriptStarted, ScriptEnded, Uploaded, HostLost, StopAsked, InterruptAsked, Resumed,
                 CheckpointKept, RuleFired, WaitedTooLong, Noted>;

std::string_view NameOf(const JobEvent& event);  // "script_ended"

// An event as stored: numbered from 1 within its job.
struct StoredEvent {
  JobId job;
  uint64_t seq = 0;
  WallTime at;
  std::string name;
  JobState state = JobState::kQueued;  // after it
  uint32_t attempt = 0;                // number; 0: none
  Cause cause;
  bool operator==(const StoredEvent&) const = default;
};

}  // namespace athanor
