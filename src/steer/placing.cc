// The engine's view of the queue: live records in, placements and reasons out.
#include <algorithm>

#include "place/queue.h"
#include "steer/attempts.h"
#include "steer/decide.h"
#include "steer/engine.h"
#include "steer/queue_view.h"

namespace athanor {
namespace {

// With a long queue a plan is made at most this often.
constexpr size_t kLongQueue = 64;
constexpr Millis kLongQueuePause{25};

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
  auto& until = attempts_[last->id].rests_until;
  if (!until) until = now + Millis(left);
  return std::max(*until - now, Millis(0));
}

Engine::WaitKey Engine::WaitKeyOf(const Need& need, int32_t priority) {
  return {need.nodes, need.cpu_millis, need.memory_bytes, need.gpus, priority};
}

const Cause* Engine::KnownWait(const JobRecord& record) const {
  if (waits_.empty() || live_.size() <= kLongQueue || parts_.backends.all().size() != 1) {
    return nullptr;
  }
  auto need = Resolve(record.spec.resources, parts_.catalogue,
                      parts_.backends.all().front().inventory, parts_.simulate);
  if (!need) return nullptr;
  auto at = waits_.find(WaitKeyOf(*need, record.spec.priority));
  return at == waits_.end() ? nullptr : &at->second;
}

LineView Engine::ViewLine(const Backends::Entry& at, size_t most) {
  LineView line;
  line.view.inventory = at.inventory;
  line.view.backend = at.name();
  line.view.now = parts_.clock.Wall();
  for (const auto* record : Holding()) {
    if (record->current()->placement.backend == line.view.backend) {
      line.view.running.push_back(ViewOfRunning(*record));
    }
  }
  line.view.waiting.reserve(std::min(most, line_.size()));
  line.waiting.reserve(std::min(most, line_.size()));
  for (const auto& [place, record] : line_) {
    if (line.waiting.size() == most) break;
    auto job = ViewOfWaiting(*record, parts_.catalogue, at.inventory, parts_.simulate);
    if (!job) {
      line.impossible.emplace_back(record, job.error());
      continue;
    }
    if (const auto rest = RestLeft(*record); rest.count() > 0) {
      job->not_before = {line.view.now.ms + rest.count()};
    }
    if (const auto was = overtaken_.find(place.job); was != overtaken_.end()) {
      job->overtaken = was->second;
    }
    line.view.waiting.push_back(std::move(*job));
    line.waiting.push_back(record);
  }
  return line;
}

void Engine::PlaceWaiting() {
  if (stopped_) return;
  placing_at_.reset();
  const auto began = parts_.clock.Monotonic();
  Millis again{0};
  waits_.clear();
  std::map<JobId, Error> impossible;
  for (const auto& at : parts_.backends.all()) {
    const auto wanted = PlaceAt(at, impossible);
    if (wanted.count() > 0) again = again.count() == 0 ? wanted : std::min(again, wanted);
  }
  for (const auto& [id, error] : impossible) {
    // The machine shrank, or its settings changed, since the job was accepted.
    Apply(id, StopAsked{{"never_fits", error.what, error.hint, error.why}, "athanor", Millis(0)});
  }
  if (again.count() > 0) PlaceAfter(again);
  plan_cost_ = parts_.clock.Monotonic() - began;
  Flush();
}

Millis Engine::PlaceAt(const Backends::Entry& at, std::map<JobId, Error>& impossible) {
  Millis again{0};
  const bool first = &at == &parts_.backends.all().front();
  const auto line = ViewLine(at, line_.size());
  const auto decisions = Plan(line.view);
  for (size_t i = 0; i < decisions.size(); ++i) {
    const auto& decision = decisions[i];
    // A job that an earlier back end can never hold may have been waiting for this one.
    const bool only_here = !first && impossible.erase(decision.job) > 0;
    auto& record = *line.waiting[i];
    if (decision.placed()) {
      overtaken_.erase(decision.job);
      Apply(decision.job, PlacementOf(record, decision.hosts));
      continue;
    }
    if (decision.overtaken > 0) overtaken_[decision.job] = decision.overtaken;
    if (decision.wait.Is(CauseKind::kBackoff)) {
      const Millis left = std::max(RestLeft(record), Millis(10));
      again = again.count() == 0 ? left : std::min(again, left);
    }
    if (first || only_here) TellWait(record, decision.wait);
  }
  // A new job would wait for the same thing as the last one of its kind.
  for (size_t i = decisions.size(); i-- > 0;) {
    const auto& wait = decisions[i].wait;
    const bool lasting = wait.Is(CauseKind::kBackoff) || wait.Is(CauseKind::kNeverFits);
    if (decisions[i].placed() || lasting) continue;
    const auto& job = line.view.waiting[i];
    waits_.try_emplace(WaitKeyOf(job.need, job.priority), wait);
  }
  for (const auto& [record, error] : line.impossible) {
    if (first) impossible.emplace(record->id, error);
  }
  return again;
}

void Engine::TellWait(JobRecord& record, const Cause& wait) {
  if (record.cause.kind == wait.kind) {
    record.cause = wait;  // the text changes; the kind is what is stored
  } else {
    Apply(record.id, Waiting{wait});
  }
}

// An escalated attempt has its own type and price; one on a machine that can be taken away has the
// lower price.
Placed Engine::PlacementOf(const JobRecord& record, std::vector<Placement> hosts) const {
  Placed placed{AttemptId::New(), Together(hosts)};
  placed.hosts = std::move(hosts);
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
