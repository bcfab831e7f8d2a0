// The engine's view of the queue: live records in, placements and reasons out.
#include <algorithm>

#include "place/queue.h"
#include "steer/decide.h"
#include "steer/engine.h"

namespace athanor {
namespace {

// With a long queue a plan is made at most this often.
constexpr size_t kLongQueue = 64;
constexpr Millis kLongQueuePause{25};

RunningJob ViewOfRunning(const JobRecord& record) {
  RunningJob job;
  job.id = record.id;
  job.name = record.spec.name;
  job.placement = record.current()->placement;
  const auto& limits = record.spec.limits;
  if (limits.max_runtime.count() > 0 && record.current()->started.ms != 0) {
    job.ends_by = WallTime{record.current()->started.ms + limits.max_runtime.count() +
                           limits.stop_grace.count()};
  }
  return job;
}

}  // namespace

void Engine::SchedulePlacing(Millis delay) {
  if (placing_scheduled_ || stopped_) return;
  if (delay.count() == 0 && live_.size() > kLongQueue) delay = kLongQueuePause;
  if (delay.count() == 0) return PlaceWaiting();
  placing_scheduled_ = true;
  parts_.executor.After(delay, [this] {
    placing_scheduled_ = false;
    PlaceWaiting();
  });
  Flush();
}

void Engine::PlaceWaiting() {
  QueueView view;
  view.inventory = parts_.inventory;
  view.now = parts_.clock.Wall();
  std::vector<std::pair<JobId, Error>> impossible;
  for (const auto& [id, record] : live_) {
    if (HoldsRoom(record.state)) view.running.push_back(ViewOfRunning(record));
    if (record.state != JobState::kQueued) continue;
    auto need = Resolve(record.spec.resources, parts_.catalogue, parts_.inventory, parts_.simulate);
    if (!need) {
      impossible.emplace_back(id, need.error());
      continue;
    }
    WaitingJob job;
    job.id = id;
    job.name = record.spec.name;
    job.priority = record.spec.priority;
    job.created = record.created;
    job.need = *need;
    job.attempts = static_cast<uint32_t>(record.attempts.size());
    job.not_before = NotBefore(record);
    job.overtaken = overtaken_[id];
    view.waiting.push_back(std::move(job));
  }
  Millis again{0};
  for (const auto& decision : Plan(view)) {
    if (decision.placement) {
      overtaken_.erase(decision.job);
      Apply(decision.job, Placed{AttemptId::New(), *decision.placement});
      continue;
    }
    overtaken_[decision.job] = decision.overtaken;
    const auto& record = live_.at(decision.job);
    if (decision.wait.kind == "backoff") {
      Millis left{std::max<int64_t>(NotBefore(record).ms - view.now.ms, 10)};
      again = again.count() == 0 ? left : std::min(again, left);
    }
    if (record.cause.kind == decision.wait.kind) {
      live_.at(decision.job).cause = decision.wait;  // the text moves; the kind is what is stored
    } else {
      Apply(decision.job, Waiting{decision.wait});
    }
  }
  for (const auto& [id, error] : impossible) {
    // The machine shrank, or its settings changed, since the job was accepted.
    Apply(id, StopAsked{{"never_fits", error.what, error.hint, error.why}, "athanor", Millis(0)});
  }
  if (again.count() > 0) SchedulePlacing(again);
  Flush();
}

}  // namespace athanor
