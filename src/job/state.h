// The state table of a job, as data. Next() is the only way from one state to another; a terminal
// state is final. The diagram in docs/architecture.md is generated from kEdges and a test compares
// them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace athanor {

enum class JobState {
  kQueued,       // accepted, waits for room
  kPlacing,      // room is reserved, the back end is starting it
  kPreparing,    // the agent builds source, environment, data
  kRunning,      // the script runs
  kUploading,    // the script ended; outputs are being stored
  kInterrupted,  // the attempt ended through no fault of the script
  kCompleted,
  kFailed,
  kStopped,
};
inline constexpr JobState kAllStates[] = {
    JobState::kQueued,    JobState::kPlacing,   JobState::kPreparing,
    JobState::kRunning,   JobState::kUploading, JobState::kInterrupted,
    JobState::kCompleted, JobState::kFailed,    JobState::kStopped};

// Steps are what the table knows; events (job/event.h) are what is reported.
enum class Step {
  kPlace,    // the queue gave it room
  kPrepare,  // its agent is up
  kStart,    // the script runs
  kEnd,      // the script ended, one way or another
  kComplete,
  kFail,
  kStop,
  kInterrupt,  // machine lost, preempted, launch failed for now
  kRequeue,    // a new attempt may be placed
};
inline constexpr Step kAllSteps[] = {Step::kPlace, Step::kPrepare,   Step::kStart,
                                     Step::kEnd,   Step::kComplete,  Step::kFail,
                                     Step::kStop,  Step::kInterrupt, Step::kRequeue};

struct Edge {
  JobState from;
  Step step;
  JobState to;
};
std::span<const Edge> Edges();

std::optional<JobState> Next(JobState state, Step step);
bool IsTerminal(JobState state);
// Holds a reservation on a machine.
bool HoldsRoom(JobState state);

std::string_view NameOf(JobState state);  // "Queued"
std::string_view NameOf(Step step);       // "place"
std::optional<JobState> StateNamed(std::string_view name);

}  // namespace athanor
