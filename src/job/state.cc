#include "job/state.h"

namespace athanor {
namespace {

using enum JobState;

constexpr Edge kEdges[] = {
    {kQueued, Step::kPlace, kPlacing},
    {kQueued, Step::kStop, kStopped},
    {kQueued, Step::kFail, kFailed},
    {kPlacing, Step::kPrepare, kPreparing},
    {kPlacing, Step::kInterrupt, kInterrupted},
    {kPlacing, Step::kFail, kFailed},
    {kPlacing, Step::kStop, kStopped},
    {kPreparing, Step::kStart, kRunning},
    {kPreparing, Step::kInterrupt, kInterrupted},
    {kPreparing, Step::kFail, kFailed},
    {kPreparing, Step::kStop, kStopped},
    {kRunning, Step::kEnd, kUploading},
    {kRunning, Step::kInterrupt, kInterrupted},
    {kRunning, Step::kFail, kFailed},
    {kRunning, Step::kStop, kStopped},
    {kUploading, Step::kComplete, kCompleted},
    {kUploading, Step::kFail, kFailed},
    {kUploading, Step::kStop, kStopped},
    {kUploading, Step::kInterrupt, kInterrupted},
    {kInterrupted, Step::kRequeue, kQueued},
    {kInterrupted, Step::kFail, kFailed},
    {kInterrupted, Step::kStop, kStopped},
};

}  // namespace

std::span<const Edge> Edges() { return kEdges; }

std::optional<JobState> Next(JobState state, Step step) {
  for (const auto& edge : kEdges) {
    if (edge.from == state && edge.step == step) return edge.to;
  }
  return std::nullopt;
}

bool IsTerminal(JobState state) {
  return state == kCompleted || state == kFailed || state == kStopped;
}

bool HoldsRoom(JobState state) {
  return state == kPlacing || state == kPreparing || state == kRunning || state == kUploading;
}

std::string_view NameOf(JobState state) {
  switch (state) {
    case kQueued:
      return "Queued";
    case kPlacing:
      return "Placing";
    case kPreparing:
      return "Preparing";
    case kRunning:
      return "Running";
    case kUploading:
      return "Uploading";
    case kInterrupted:
      return "Interrupted";
    case kCompleted:
      return "Completed";
    case kFailed:
      return "Failed";
    case kStopped:
      return "Stopped";
  }
  return "";
}

std::string_view NameOf(Step step) {
  switch (step) {
    case Step::kPlace:
      return "place";
    case Step::kPrepare:
      return "prepare";
    case Step::kStart:
      return "start";
    case Step::kEnd:
      return "end";
    case Step::kComplete:
      return "complete";
    case Step::kFail:
      return "fail";
    case Step::kStop:
      return "stop";
    case Step::kInterrupt:
      return "interrupt";
    case Step::kRequeue:
      return "requeue";
  }
  return "";
}

std::optional<JobState> StateNamed(std::string_view name) {
  for (auto state : kAllStates) {
    if (NameOf(state) == name) return state;
  }
  return std::nullopt;
}

}  // namespace athanor
