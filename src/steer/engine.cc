#include "steer/engine.h"

#include <algorithm>

#include "base/text/text.h"
#include "steer/decide.h"

namespace athanor {
namespace {

// An agent needs a moment to take its lock before its absence means anything.
constexpr Millis kSettle{3'000};
constexpr Millis kPollEvery{1'000};
constexpr Millis kWordsPause{500};

}  // namespace

Engine::Engine(Parts parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;

Status Engine::Start() {
  ATHANOR_CHECK_OK(parts_.jobs.EachLive([this](JobRecord&& read) {
    auto& record = live_.emplace_hint(live_.end(), read.id, std::move(read))->second;
    for (const auto& attempt : record.attempts) attempts_[attempt.id] = record.id;
    ArmSpot(record);
    File(record);
  }));
  ATHANOR_TRY(auto outbox, parts_.jobs.Outbox());
  for (const auto& effect : outbox) {
    next_effect_ = std::max(next_effect_, effect.id + 1);
    Perform(effect);
  }
  SchedulePlacing(Wanted::kRoomCame);
  poll_timer_ = parts_.executor.After(kPollEvery, [this] { PollAttempts(); });
  return Ok();
}

void Engine::Stop() {
  stopped_ = true;
  parts_.executor.Cancel(poll_timer_);
  parts_.writer.Stop();
  parts_.effects.Stop();
}

const JobRecord* Engine::Live(JobId job) const {
  auto it = live_.find(job);
  return it == live_.end() ? nullptr : &it->second;
}

std::optional<JobId> Engine::JobOf(AttemptId attempt) const {
  auto it = attempts_.find(attempt);
  if (it == attempts_.end()) return std::nullopt;
  return it->second;
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
    Error error{ErrorCode::kConflict, "this key was used for another job"};
    error.why = "key " + draft.key + " belongs to job " + hit->id.ToString();
    error.hint = "submit again without --key, or with a new one";
    error.id = "ATH-S0201";
    return done(Fail(std::move(error)));
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
  if (const auto* attempt = it->second.current()) attempts_[attempt->id] = job;
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

void Engine::Touch(AttemptId attempt, int64_t held_ms) {
  const auto job = JobOf(attempt);
  if (!job) return;
  auto& record = live_.at(*job);
  auto& current = *record.current();
  // The current attempt does not pay for what an older one held.
  if (current.id != attempt || current.ended.ms != 0) return;
  agent_lives_[attempt].Heard(parts_.clock.Monotonic());
  record.last_seen = parts_.clock.Wall();
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
    auto it = live_.find(record.id);
    // Memory may be newer than what was just written; only a stored end counts.
    if (it != live_.end() && IsTerminal(record.state)) {
      for (const auto& attempt : record.attempts) {
        agent_lives_.erase(attempt.id);
        launched_at_.erase(attempt.id);
        rests_until_.erase(attempt.id);
        armed_.erase(attempt.id);
      }
      if (const auto wait = waits_until_.find(record.id); wait != waits_until_.end()) {
        wait_ends_.erase({wait->second, record.id});
        waits_until_.erase(wait);
      }
      overtaken_.erase(record.id);
    }
  }
  for (const auto& effect : batch->batch.effects) Perform(effect);
  for (const auto& record : batch->batch.records) {
    if (!IsTerminal(record.state)) continue;
    for (const auto& attempt : record.attempts) attempts_.erase(attempt.id);
    live_.erase(record.id);
  }
  Flush();
}

void Engine::Perform(const Effect& effect) {
  auto it = live_.find(effect.job);
  switch (effect.kind) {
    case EffectKind::kLaunch:
      // Its agent may have started before the handle was stored: launching it again makes it known.
      if (it == live_.end() || !HoldsRoom(it->second.state) ||
          it->second.current()->id != effect.attempt) {
        return Performed(effect.id);
      }
      return Launch(it->second, effect);
    case EffectKind::kStop:
      // The door passes the stop to the agent when it asks; the record contains it.
      if (it != live_.end()) parts_.changed(it->second, {});
      return Performed(effect.id);
    case EffectKind::kRelease:
      return Release(effect.attempt.ToString(), [this, effect](const Status& status) {
        if (status || status.error().code != ErrorCode::kUnavailable) return Performed(effect.id);
        PerformLater(effect);
      });
  }
}

void Engine::PerformLater(const Effect& effect) {
  parts_.executor.After(kSettle, [this, effect] {
    if (!stopped_) Perform(effect);
  });
}

void Engine::Release(const std::string& handle, std::function<void(const Status&)> done) {
  bool taken = parts_.effects.Submit([this, handle, done = std::move(done)] {
    auto status = parts_.backend.Release(handle);
    parts_.executor.Post([this, status, done] {
      if (!status) {
        parts_.log.Log(LogLevel::kWarning, "release failed", {{"why", status.error().what}});
      }
      done(status);
    });
  });
  (void)taken;  // stopping: the outbox keeps it
}

void Engine::Launch(const JobRecord& record, std::optional<Effect> effect) {
  auto plan = std::make_shared<LaunchPlan>(parts_.plan(record));
  launched_at_[plan->attempt()] = parts_.clock.Monotonic();
  agent_lives_[plan->attempt()].Launched(parts_.clock.Monotonic());
  bool taken = parts_.effects.Submit([this, plan, effect] {
    auto handle = parts_.backend.Launch(*plan);
    parts_.executor.Post([this, plan, effect, handle] { LaunchAnswered(*plan, effect, handle); });
  });
  (void)taken;
}

void Engine::LaunchAnswered(const LaunchPlan& plan, const std::optional<Effect>& effect,
                            const Result<std::string>& handle) {
  // Without an answer it may still run, and an attempt that lost its agent does run: neither is
  // replaced, both are launched again.
  const bool may_run = !handle && (!effect || handle.error().code == ErrorCode::kUnavailable);
  if (may_run) {
    parts_.log.Log(LogLevel::kWarning, "launch failed, asked for again",
                   {{"attempt", plan.attempt().ToString()}, {"why", handle.error().what}});
    if (effect) PerformLater(*effect);
    return;
  }
  if (effect) pending_.batch.performed.push_back(effect->id);
  if (handle) {
    Apply(plan.hosts.front().job, Launched{plan.attempt(), *handle});
  } else {
    Cause cause{"launch_failed", handle.error().what, handle.error().hint, handle.error().why};
    Apply(plan.hosts.front().job,
          LaunchFailed{plan.attempt(), cause, handle.error().code == ErrorCode::kInvalid});
  }
  Flush();
}

void Engine::Performed(uint64_t effect) {
  pending_.batch.performed.push_back(effect);
  Flush();
}

void Engine::PollAttempts() {
  if (stopped_) return;
  poll_timer_ = parts_.executor.After(kPollEvery, [this] { PollAttempts(); });
  CheckWaits();
  std::vector<std::pair<AttemptId, std::string>> ask;
  auto now = parts_.clock.Monotonic();
  for (const auto* record : Holding()) {
    const auto* attempt = record->current();
    if (!attempt || attempt->handle.empty()) continue;
    auto launched = launched_at_.find(attempt->id);
    if (launched != launched_at_.end() && now - launched->second < kSettle) continue;
    ask.emplace_back(attempt->id, attempt->handle);
  }
  if (ask.empty()) return;
  bool taken = parts_.effects.Submit([this, ask] {
    for (const auto& [attempt, handle] : ask) {
      auto hosts = parts_.backend.Poll({handle}).front();
      HostStatus status{HostStatus::State::kGone, hosts ? "" : hosts.error().what};
      if (hosts && !hosts->empty()) status = hosts->front();
      if (!hosts && hosts.error().code != ErrorCode::kNotFound) continue;  // silence is not death
      if (status.state == HostStatus::State::kAlive) continue;
      parts_.executor.Post([this, attempt = attempt, status] { PolledGone(attempt, status); });
    }
  });
  (void)taken;
}

void Engine::PolledGone(AttemptId attempt, const HostStatus& status) {
  auto job = JobOf(attempt);
  if (!job) return;
  const auto& record = live_.at(*job);
  if (!HoldsRoom(record.state) || record.current()->id != attempt) return;
  if (status.state == HostStatus::State::kAgentGone && agent_lives_[attempt].Another()) {
    parts_.log.Log(LogLevel::kWarning, "agent gone, starting another",
                   {{"job", job->ToString()}, {"why", status.detail}});
    return Launch(record, std::nullopt);
  }
  const Cause cause{"agent_lost", status.detail, "ath retry " + ShellQuote(record.spec.name), ""};
  if (status.state == HostStatus::State::kGone) return Apply(*job, HostLost{attempt, cause});
  // Its script may still run: it is given up when the back end says that nothing of it runs.
  Release(record.current()->handle, [this, job = *job, attempt, cause](const Status& ended) {
    if (ended) Apply(job, HostLost{attempt, cause});
  });
}

}  // namespace athanor
