#include "run/supervisor/stop_round.h"

#include <algorithm>

namespace athanor {
namespace {

// A shell between two programs, or a filter that drains, is done sooner than this.
constexpr int64_t kIdleMs = 1'000;
// That many programs one after the other, each stopped, are a loop such as `until python train.py;
// do sleep 1; done`.
constexpr int kLoopPrograms = 8;

}  // namespace

bool StopRound::WasAsked(const StopTarget& target) const {
  const auto found = asked_.find(target.pid);
  if (found == asked_.end() || found->second.start_ticks != target.start_ticks) return false;
  const bool program =
      target.kind != StopTarget::Kind::kIdle && target.kind != StopTarget::Kind::kTrap;
  return !(program && found->second.front);
}

bool StopRound::IsDue(const StopTarget& target, int64_t now_ms) {
  switch (target.kind) {
    case StopTarget::Kind::kProgram:
      ++later_;
      return true;
    case StopTarget::Kind::kTrap:
      return true;
    case StopTarget::Kind::kSaver:
      return false;
    case StopTarget::Kind::kIdle:
    case StopTarget::Kind::kFilter:
      return now_ms - waiting_.try_emplace(target.pid, now_ms).first->second >= kIdleMs;
  }
  return false;
}

std::vector<int> StopRound::Next(const std::vector<ProcessInfo>& all, int rank_pid,
                                 const std::function<ProcessTraits(int)>& traits_of,
                                 int64_t now_ms) {
  std::erase_if(asked_, [&](const auto& asked) {
    return std::none_of(all.begin(), all.end(), [&](const ProcessInfo& process) {
      return process.pid == asked.first && process.start_ticks == asked.second.start_ticks;
    });
  });
  const auto spare = [&](const ProcessInfo& shell) {
    return !first_ && asked_.count(shell.pid) > 0;
  };
  auto targets = StopTargets(all, rank_pid, traits_of, spare);
  std::erase_if(waiting_, [&](const auto& waiting) {
    return std::none_of(targets.begin(), targets.end(), [&](const StopTarget& target) {
      return target.pid == waiting.first &&
             (target.kind == StopTarget::Kind::kIdle || target.kind == StopTarget::Kind::kFilter);
    });
  });
  if (!first_) {
    std::erase_if(targets, [&](const StopTarget& target) {
      return WasAsked(target) || !IsDue(target, now_ms);
    });
  }
  first_ = false;
  std::vector<int> pids;
  for (const auto& target : targets) {
    asked_[target.pid] = {target.start_ticks, target.kind == StopTarget::Kind::kIdle ||
                                                  target.kind == StopTarget::Kind::kTrap};
    pids.push_back(target.pid);
  }
  if (later_ > kLoopPrograms) {
    later_ = 0;
    if (asked_.count(rank_pid) == 0) pids.push_back(rank_pid);
  }
  return pids;
}

}  // namespace athanor
