#include "steer/engine.h"

#include <algorithm>

#include "base/text/text.h"
#include "steer/decide.h"

namespace athanor {
namespace {

constexpr Millis kLookEvery{1'000};
constexpr Millis kWordsPause{500};

}  // namespace

Engine::Engine(Parts parts)
    : parts_(std::move(parts)), outbox_(OutboxParts()), watch_(WatchParts()) {}
Engine::~Engine() = default;

Outbox::Parts Engine::OutboxParts() {
  return {parts_.executor,
          parts_.log,
          parts_.backends,
          parts_.make_pool,
          [this](JobId job) { return Live(job); },
          [this](JobId job) {
            auto record = parts_.jobs.Find(job);
            return record ? std::optional(std::move(*record)) : std::nullopt;
          },
          parts_.plan,
          [this](const JobRecord& record, const std::vector<uint32_t>& hosts) {
            const auto now = parts_.clock.Monotonic();
            auto& attempt = attempts_[record.current()->id];
            attempt.launched = now;
            for (const auto host : hosts) attempt.agent(host).Launched(now);
          },
          [this](JobId job, const Cause& why) {
            const auto at = live_.find(job);
            if (at == live_.end() || at->second.state != JobState::kPlacing) return;
            at->second.cause = why;
            parts_.changed(at->second, {});
          },
          [this](const JobRecord& record) { parts_.changed(record, {}); },
          [this](uint64_t effect) { pending_.batch.performed.push_back(effect); },
          [this](JobId job, JobEvent event) { Apply(job, std::move(event)); },
          [this] { Flush(); }};
}

HostWatch::Parts Engine::WatchParts() {
  return {parts_.executor,
          parts_.clock,
          parts_.log,
          parts_.backends,
          parts_.make_pool,
          outbox_,
          attempts_,
          [this] { return Holding(); },
          [this](JobId job) {
            const auto at = live_.find(job);
            return at == live_.end() ? nullptr : &at->second;
          },
          [this](JobId job, JobEvent event) { Apply(job, std::move(event)); },
          [this](const JobRecord& record) { parts_.changed(record, {}); }};
}

Status Engine::Start() {
  ATHANOR_CHECK_OK(parts_.jobs.EachLive([this](JobRecord&& read) {
    auto& record = live_.emplace_hint(live_.end(), read.id, std::move(read))->second;
    for (const auto& attempt : record.attempts) attempts_[attempt.id].job = record.id;
    ArmSpot(record);
    File(record);
  }));
  ATHANOR_TRY(auto outbox, parts_.jobs.Outbox());
  for (const auto& effect : outbox) {
    next_effect_ = std::max(next_effect_, effect.id + 1);
    outbox_.Perform(effect);
  }
  SchedulePlacing(Wanted::kRoomCame);
  look_timer_ = parts_.executor.After(kLookEvery, [this] { EachSecond(); });
  return Ok();
}

void Engine::EachSecond() {
  if (stopped_) return;
  look_timer_ = parts_.executor.After(kLookEvery, [this] { EachSecond(); });
  CheckWaits();
  watch_.Look();
}

void Engine::Stop() {
  stopped_ = true;
  parts_.executor.Cancel(look_timer_);
  parts_.writer.Stop();
  outbox_.Stop();
  watch_.Stop();
}

const JobRecord* Engine::Live(JobId job) const {
  auto it = live_.find(job);
  return it == live_.end() ? nullptr : &it->second;
}

std::optional<JobId> Engine::JobOf(AttemptId attempt) const {
  auto it = attempts_.find(attempt);
  if (it == attempts_.end()) return std::nullopt;
  return it->second.job;
}

std::vector<const JobRecord*> Engine::AllLive() const {
  std::vector<const JobRecord*> all;
  for (const auto& [id, record] : live_) all.push_back(&record);
  return all;
}

std::vector<const JobRecord*> Engine::Holding() const {
  std::vector<const JobRecord*> all;
  for (const JobId id : holding_) all.push_back(&live_.at(id));
  return all;
}

void Engine::EachWaiting(const std::function<bool(const JobRecord&)>& visit) const {
  for (const auto& [place, record] : line_) {
    if (!visit(*record)) return;
  }
}

void Engine::File(JobRecord& record) {
  if (HoldsRoom(record.state)) {
    holding_.insert(record.id);
  } else {
    holding_.erase(record.id);
  }
  if (record.state == JobState::kQueued) {
    line_.insert_or_assign(PlaceOf(record), &record);
  } else {
    line_.erase(PlaceOf(record));
  }
}

void Engine::Submit(JobRecord draft, std::function<void(Result<Accepted>)> done) {
  std::optional<JobStore::KeyHit> hit;
  if (auto it = pending_keys_.find(draft.key); it != pending_keys_.end()) {
    hit = JobStore::KeyHit{it->second, live_.at(it->second).spec_hash};
  } else {
    auto stored = parts_.jobs.FindKey(draft.key);
    if (!stored) return done(tl::unexpected(stored.error()));
    hit = *stored;
  }
  if (hit && hit->spec_hash != draft.spec_hash) {
    return done(Fail(Error{ErrorCode::kConflict, "this key was used for another job",
                           "submit again without --key, or with a new one"}
                         .Why("key " + draft.key + " belongs to job " + hit->id.ToString())
                         .Id("ATH-S0201")));
  }
  if (hit) {
    // Known, but perhaps not durable yet: answer with the batch that makes it durable.
    auto reply = [done, id = hit->id](const Status& status) {
      if (!status) return done(tl::unexpected(status.error()));
      done(Accepted{id, true});
    };
    if (!pending_keys_.contains(draft.key)) return reply(Ok());
    pending_.done.push_back(reply);
    return Flush();
  }
  auto id = draft.id;
  auto key = draft.key;
  auto decision = Decide(std::move(draft), Submitted{}, parts_.clock.Wall());
  if (!decision) return done(tl::unexpected(decision.error()));
  auto events = std::move(decision->events);
  // At the end of a long line, the reason is known before the next plan: written once.
  const auto* wait = KnownWait(decision->record);
  if (wait != nullptr) {
    decision = Decide(std::move(decision->record), Waiting{*wait}, parts_.clock.Wall());
    if (!decision) return done(tl::unexpected(decision.error()));
    std::move(decision->events.begin(), decision->events.end(), std::back_inserter(events));
  }
  pending_keys_[key] = id;
  Keep(decision->record);
  ArmSpot(decision->record);
  auto& kept = live_[id] = std::move(decision->record);
  File(kept);
  std::move(events.begin(), events.end(), std::back_inserter(pending_.batch.events));
  pending_.done.push_back([this, done = std::move(done), id, key](const Status& status) {
    pending_keys_.erase(key);
    if (!status) return done(tl::unexpected(status.error()));
    done(Accepted{id, false});
  });
  if (wait != nullptr) {
    // The last plan refused a job with the same need: a new plan would only change the texts of
    // reasons.
    PlaceAfter(std::max(kWordsPause, 200 * plan_cost_));
    return Flush();
  }
  // Placed in the same turn, so that acceptance and placement share one commit.
  SchedulePlacing(Wanted::kNewcomer);
}

void Engine::Apply(JobId job, JobEvent event, std::function<void(Status)> done) {
  auto it = live_.find(job);
  if (it == live_.end()) {
    auto known = parts_.jobs.Find(job);
    Status refused =
        known ? Status(Fail(Error{ErrorCode::kConflict,
                                  "the job is already " + std::string(NameOf(known->state)),
                                  "ath retry " + ShellQuote(known->spec.name)}
                                .Id("ATH-R0006")))
              : Status(tl::unexpected(known.error()));
    if (done) done(refused);
    return;
  }
  auto decision = Decide(it->second, event, parts_.clock.Wall());
  if (!decision) {
    if (done) done(tl::unexpected(decision.error()));
    return;
  }
  bool gives_room = HoldsRoom(it->second.state) && !HoldsRoom(decision->record.state);
  const bool left_line =
      it->second.state == JobState::kQueued && IsTerminal(decision->record.state);
  it->second = std::move(decision->record);
  File(it->second);
  if (const auto* attempt = it->second.current()) attempts_[attempt->id].job = job;
  if (it->second.state == JobState::kRunning) ArmSpot(it->second);
  Keep(it->second);
  for (auto& stored : decision->events) pending_.batch.events.push_back(std::move(stored));
  for (auto& effect : decision->effects) {
    effect.id = next_effect_++;
    pending_.batch.effects.push_back(effect);
  }
  if (done) pending_.done.push_back(std::move(done));
  if (gives_room) SchedulePlacing(Wanted::kRoomCame);
  // Those after it may have waited only for its turn.
  if (left_line) PlaceAfter(PauseFor(Wanted::kNewcomer));
  Flush();
}

void Engine::Forget(JobId job, std::function<void(Status)> done) {
  if (live_.contains(job)) {
    return done(
        Fail(Error{ErrorCode::kConflict, "the job is not over", "ath stop " + job.ToString()}.Id(
            "ATH-R0005")));
  }
  auto known = parts_.jobs.Find(job);
  if (!known) return done(tl::unexpected(known.error()));
  pending_.batch.forget.push_back(job);
  pending_.done.push_back(std::move(done));
  Flush();
}

void Engine::Touch(AttemptId attempt, uint32_t host, int64_t held_ms, const HostUsage& usage) {
  const auto job = JobOf(attempt);
  if (!job) return;
  auto& record = live_.at(*job);
  auto& current = *record.current();
  // The current attempt does not pay for what an older one held.
  if (current.id != attempt || current.ended.ms != 0 || host >= current.hosts.size()) return;
  attempts_[attempt].agent(host).Heard(parts_.clock.Monotonic());
  auto& known = current.hosts[host];
  if (known.over.ms != 0) return;
  record.last_seen = known.last_seen = parts_.clock.Wall();
  known.held_ms = std::max(known.held_ms, held_ms);
  known.usage = usage;
  current.held_ms = std::max(current.held_ms, held_ms);
}

// A record that changes several times before a commit is written once, in its last state.
void Engine::Keep(const JobRecord& record) {
  auto [it, is_new] = pending_.index.try_emplace(record.id, pending_.batch.records.size());
  if (is_new) {
    pending_.batch.records.push_back(record);
  } else {
    pending_.batch.records[it->second] = record;
  }
}

void Engine::Flush() {
  if (committing_ || stopped_) return;
  if (pending_.batch.empty() && pending_.done.empty()) return;
  committing_ = true;
  auto batch = std::make_shared<Pending>(std::move(pending_));
  pending_ = {};
  bool taken = parts_.writer.Submit([this, batch] {
    // Shared with the loop, which reads it after the commit only.
    auto status = batch->batch.empty() ? Ok() : parts_.jobs.Commit(batch->batch);
    parts_.executor.Post([this, status, batch] { Committed(status, batch); });
  });
  if (!taken) committing_ = false;
}

void Engine::Committed(Status status, std::shared_ptr<Pending> batch) {
  committing_ = false;
  if (!status) {
    for (auto& done : batch->done) done(status);
    stopped_ = true;
    return parts_.fatal(status.error());
  }
  for (auto& done : batch->done) done(status);
  std::vector<std::vector<StoredEvent>> events(batch->batch.records.size());
  for (auto& event : batch->batch.events) {
    auto at = batch->index.find(event.job);
    if (at != batch->index.end()) events[at->second].push_back(std::move(event));
  }
  for (size_t i = 0; i < batch->batch.records.size(); ++i) {
    const auto& record = batch->batch.records[i];
    parts_.changed(record, events[i]);
    if (live_.contains(record.id) && IsTerminal(record.state)) Leave(record);
  }
  for (const auto& effect : batch->batch.effects) outbox_.Perform(effect);
  for (const auto& record : batch->batch.records) {
    if (!IsTerminal(record.state)) continue;
    for (const auto& attempt : record.attempts) attempts_.erase(attempt.id);
    live_.erase(record.id);
  }
  Flush();
}

// Memory may be newer than what was just written; only a stored end counts.
void Engine::Leave(const JobRecord& record) {
  if (const auto wait = waits_until_.find(record.id); wait != waits_until_.end()) {
    wait_ends_.erase({wait->second, record.id});
    waits_until_.erase(wait);
  }
  overtaken_.erase(record.id);
}

}  // namespace athanor
