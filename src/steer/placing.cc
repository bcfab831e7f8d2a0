// The engine's view of the queue: live records in, placements and reasons out.
#include <algorithm>

#include "place/queue.h"
#include "steer/attempts.h"
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

// Room that became free is given at once. A new job is considered in the turn in which it came, so
// that acceptance and placement share a commit; at the end of a long line it can wait, and plans
// are spaced so that planning takes at most a twentieth of the thread's time.
void Engine::SchedulePlacing(Wanted wanted) {
  if (live_.size() <= kLongQueue) return PlaceWaiting();
  PlaceAfter(PauseFor(wanted));
  Flush();
}

Millis Engine::PauseFor(Wanted wanted) const {
  if (live_.size() <= kLongQueue) return Millis(0);
  return wanted == Wanted::kRoomCame ? kLongQueuePause : std::max(kLongQueuePause, 20 * plan_cost_);
}

void Engine::PlaceAfter(Millis delay) {
  if (stopped_) return;
  const auto at = parts_.clock.Monotonic() + delay;
  if (placing_at_ && *placing_at_ <= at) return;
  if (placing_at_) parts_.executor.Cancel(placing_timer_);
  placing_at_ = at;
  placing_timer_ = parts_.executor.After(delay, [this] { PlaceWaiting(); });
}

// The wall clock is read once, when the pause is first seen; a jump after that changes nothing, and
// one before (the server was down) cannot make the pause longer than intended.
Millis Engine::RestLeft(const JobRecord& record) {
  const auto* last = record.current();
  const auto end = NotBefore(record);
  if (!last || end <= last->ended) return Millis(0);
  const auto now = parts_.clock.Monotonic();
  const auto left =
      std::clamp<int64_t>(end.ms - parts_.clock.Wall().ms, 0, end.ms - last->ended.ms);
  const auto [at, first] = rests_until_.try_emplace(last->id, now + Millis(left));
  return std::max(at->second - now, Millis(0));
}

const Cause* Engine::KnownWait(const JobRecord& record) const {
  if (waits_.empty() || live_.size() <= kLongQueue) return nullptr;
  auto need = Resolve(record.spec.resources, parts_.catalogue, parts_.inventory, parts_.simulate);
  if (!need) return nullptr;
  auto at = waits_.find({need->cpu_millis, need->memory_bytes, need->gpus, record.spec.priority});
  return at == waits_.end() ? nullptr : &at->second;
}

void Engine::PlaceWaiting() {
  if (stopped_) return;
  placing_at_.reset();
  const auto began = parts_.clock.Monotonic();
  QueueView view;
  view.inventory = parts_.inventory;
  view.now = parts_.clock.Wall();
  std::vector<std::pair<JobId, Error>> impossible;
  std::vector<JobRecord*> waiting;  // as in the view
  view.waiting.reserve(line_.size());
  waiting.reserve(line_.size());
  for (const auto* record : Holding()) view.running.push_back(ViewOfRunning(*record));
  ResourceSpec next;
  for (const auto& [place, waits] : line_) {
    const JobId id = place.job;
    auto& record = *waits;
    if (!record.attempts.empty()) next = NextResources(record);
    const auto& wanted = record.attempts.empty() ? record.spec.resources : next;
    auto need = Resolve(wanted, parts_.catalogue, parts_.inventory, parts_.simulate);
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
    if (const auto rest = RestLeft(record); rest.count() > 0) {
      job.not_before = {view.now.ms + rest.count()};
    }
    if (const auto at = overtaken_.find(id); at != overtaken_.end()) job.overtaken = at->second;
    view.waiting.push_back(std::move(job));
    waiting.push_back(&record);
  }
  Millis again{0};
  waits_.clear();
  const auto decisions = Plan(view);
  for (size_t i = 0; i < decisions.size(); ++i) {
    const auto& decision = decisions[i];
    if (decision.placement) {
      overtaken_.erase(decision.job);
      Apply(decision.job, PlacementOf(decision.job, *decision.placement));
      continue;
    }
    if (decision.overtaken > 0) overtaken_[decision.job] = decision.overtaken;
    auto& record = *waiting[i];
    if (decision.wait.Is(CauseKind::kBackoff)) {
      const Millis left = std::max(RestLeft(record), Millis(10));
      again = again.count() == 0 ? left : std::min(again, left);
    }
    if (record.cause.kind == decision.wait.kind) {
      record.cause = decision.wait;  // the text changes; the kind is what is stored
    } else {
      Apply(decision.job, Waiting{decision.wait});
    }
  }
  // A new job would wait for the same thing as the last one of its kind.
  for (size_t i = decisions.size(); i-- > 0;) {
    const auto& wait = decisions[i].wait;
    if (decisions[i].placement || wait.Is(CauseKind::kBackoff) || wait.Is(CauseKind::kNeverFits))
      continue;
    const auto& job = view.waiting[i];
    waits_.try_emplace({job.need.cpu_millis, job.need.memory_bytes, job.need.gpus, job.priority},
                       wait);
  }
  for (const auto& [id, error] : impossible) {
    // The machine shrank, or its settings changed, since the job was accepted.
    Apply(id, StopAsked{{"never_fits", error.what, error.hint, error.why}, "athanor", Millis(0)});
  }
  if (again.count() > 0) PlaceAfter(again);
  plan_cost_ = parts_.clock.Monotonic() - began;
  Flush();
}

// An escalated attempt has its own type and price; one on a machine that can be taken away has the
// lower price.
Placed Engine::PlacementOf(JobId job, const Placement& placement) const {
  const auto& record = live_.at(job);
  Placed placed{AttemptId::New(), placement};
  const auto resources = NextResources(record);
  if (resources.type != record.spec.resources.type) placed.type = resources.type;
  const bool spot = resources.spot.use && !record.spot_fell_back;
  if (resources.type.empty() || (placed.type.empty() && !spot)) return placed;
  if (auto type = parts_.catalogue.Find(resources.type)) {
    placed.micros_per_hour =
        spot && type->spot_micros ? *type->spot_micros : type->on_demand_micros;
  }
  return placed;
}

}  // namespace athanor
