#include "place/estimate.h"

#include <algorithm>
#include <map>

namespace athanor {
namespace {

constexpr int kMostTurns = 1000;

// When something changes next; none: unknown.
std::optional<WallTime> NextChange(const QueueView& view) {
  std::optional<WallTime> next;
  const auto take = [&](WallTime at) {
    if (at.ms > view.now.ms && (!next || at.ms < next->ms)) next = at;
  };
  for (const auto& job : view.running) {
    if (job.ends_by) take(*job.ends_by);
  }
  for (const auto& job : view.waiting) take(job.not_before);
  return next;
}

}  // namespace

std::vector<std::optional<WallTime>> LatestStarts(QueueView view) {
  std::vector<std::optional<WallTime>> starts(view.waiting.size());
  std::map<JobId, size_t> places;
  for (size_t i = 0; i < view.waiting.size(); ++i) places[view.waiting[i].id] = i;
  for (int turn = 0; turn < kMostTurns && !view.waiting.empty(); ++turn) {
    const auto decisions = Plan(view);
    std::vector<WaitingJob> left;
    for (size_t i = 0; i < decisions.size(); ++i) {
      WaitingJob& job = view.waiting[i];
      if (!decisions[i].placed()) {
        job.overtaken = decisions[i].overtaken;
        left.push_back(std::move(job));
        continue;
      }
      starts[places.at(job.id)] = view.now;
      RunningJob running{job.id, job.name, Together(decisions[i].hosts), std::nullopt};
      if (job.hold_limit.count() > 0)
        running.ends_by = WallTime{view.now.ms + job.hold_limit.count()};
      view.running.push_back(std::move(running));
    }
    view.waiting = std::move(left);
    const auto next = NextChange(view);
    if (!next) break;
    view.now = *next;
    std::erase_if(view.running, [&](const RunningJob& job) {
      return job.ends_by && job.ends_by->ms <= view.now.ms;
    });
  }
  return starts;
}

}  // namespace athanor
