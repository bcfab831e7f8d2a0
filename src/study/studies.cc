#include "study/studies.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "job/codec.h"
#include "study/warm_start.h"

namespace athanor {
namespace {

constexpr Millis kTick{1'000};
constexpr Millis kRetry{2'000};

tl::unexpected<Error> Conflict(std::string what, std::string hint) {
  return Fail(Error{ErrorCode::kConflict, std::move(what), std::move(hint)}.Id("ATH-T0012"));
}

StudyEvent EventOf(StudyEvent::Kind kind, WallTime now, int64_t trial = 0) {
  StudyEvent event;
  event.kind = kind;
  event.at = now;
  event.trial = trial;
  return event;
}

}  // namespace

// An open study, with everything that its journal means.
struct Studies::Open {
  explicit Open(StudyRecord of) : record(std::move(of)), referee(record.spec) {}

  StudyRecord record;
  std::unique_ptr<tune::Session> session;
  Referee referee;
  std::set<int64_t> submitting;    // orders on their way
  std::set<int64_t> stopping;      // told to stop
  int64_t spent_micros = 0;        // by what runs
  std::vector<std::string> lines;  // applied, and not stored yet
  uint64_t stored = 0;             // lines of the journal
};

struct Studies::Waiter {
  StudyId study;
  uint64_t after = 0;
  uint64_t id = 0;
  Shown done;
};

Studies::Studies(Parts parts) : parts_(parts) {}
Studies::~Studies() { *alive_ = false; }

void Studies::Start() {
  OnWorker([this] { Load(); });
  tick_ = parts_.executor.After(kTick, [this] { Tick(); });
}

void Studies::Stop() {
  stopped_ = true;
  parts_.executor.Cancel(tick_);
}

bool Studies::OnWorker(std::function<void()> task) { return parts_.worker.Submit(std::move(task)); }

void Studies::OnLoop(std::function<void()> task) {
  parts_.executor.Post([alive = alive_, task = std::move(task)] {
    if (*alive) task();
  });
}

void Studies::Load() {
  auto rows = parts_.store.List(true);
  if (!rows) {
    parts_.log.Log(LogLevel::kError, "studies cannot be read", {{"why", rows.error().what}});
    return;
  }
  for (const auto& row : *rows) {
    auto open = OpenStudy(row);
    if (!open) {
      parts_.log.Log(LogLevel::kError, "a study cannot be read",
                     {{"study", row.name}, {"why", open.error().what + ": " + open.error().why}});
      continue;
    }
    Step(**open);
  }
}

// From the journal: the record, the search, what early stopping has seen, and which jobs to watch.
Result<Studies::Open*> Studies::OpenStudy(const StudyRow& row) {
  ATHANOR_TRY(const auto lines, parts_.store.Lines(row.id));
  ATHANOR_TRY(auto record, Replay(row, lines));
  auto open = std::make_unique<Open>(std::move(record));
  open->stored = lines.size();
  tune::JournalText journal;
  for (const auto& line : lines) {
    ATHANOR_TRY(const auto event, ReadEvent(line));
    if (auto search = SearchLine(open->record, event)) journal.events.push_back(std::move(*search));
    open->referee.Replay(event);
  }
  ATHANOR_TRY(open->session, tune::Session::Replay(journal));
  for (const auto& trial : open->record.trials) {
    if (trial.state == TrialState::kAsked) {
      // The server may have died between submitting it and storing that: its key finds the job.
      ATHANOR_TRY(const auto job, parts_.trials.FindKey(OrderOf(open->record, trial)));
      if (!job) continue;
      auto submitted = EventOf(StudyEvent::Kind::kSubmitted, parts_.clock.Wall(), trial.number);
      submitted.job = job->ToString();
      ATHANOR_CHECK_OK(Record(*open, std::move(submitted)));
    }
    if (trial.state != TrialState::kRunning) continue;
    if (const auto job = JobId::Parse(trial.job)) {
      const Whose whose{row.id, trial.number, open->referee.looks(), false};
      OnLoop([this, job = *job, whose] {
        jobs_.emplace(job, whose);
        PointsCame(job);
        JobChanged(job, true);
      });
    }
  }
  auto* out = open.get();
  open_[row.id] = std::move(open);
  return out;
}

void Studies::Create(StudySpec spec, std::string key, std::string user,
                     std::function<void(Result<Created>)> done) {
  const bool taken =
      OnWorker([this, spec = std::move(spec), key = std::move(key), user = std::move(user), done] {
        auto created = DoCreate(spec, key, user);
        OnLoop([created, done] { done(created); });
      });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

Result<Studies::Created> Studies::DoCreate(StudySpec spec, const std::string& key,
                                           const std::string& user) {
  ATHANOR_TRY(const auto earlier, parts_.store.FindKey(key));
  if (earlier) return Created{earlier->id, earlier->name, true};
  StudyRow row;
  row.id = StudyId::New();
  row.key = key.empty() ? row.id.ToString() : key;
  if (spec.name.empty()) spec.name = "study-" + row.id.ToString().substr(20);
  // A seed of its own, so that two studies do not try the same; shown, so that it can be repeated.
  if (!spec.seed) spec.seed = row.id.value.bytes[15] | (uint64_t{row.id.value.bytes[14]} << 8);
  const auto now = parts_.clock.Wall();
  std::vector<StudyEvent> events = {EventOf(StudyEvent::Kind::kCreated, now)};
  std::vector<StudyRecord> parents;
  for (auto& parent : spec.warm_start) {
    ATHANOR_TRY(const auto found, Find(parent));
    parent = found.id.ToString();
    parents.push_back(found);
  }
  ATHANOR_TRY(auto warm, WarmStart(spec, parents, now));
  for (auto& event : warm) events.push_back(std::move(event));
  row.name = spec.name;
  row.user = user;
  row.state = NameOf(StudyState::kRunning);
  row.created = now;
  row.spec = DumpJson(ToJson(spec));
  std::vector<std::string> lines;
  for (const auto& event : events) lines.push_back(WriteEvent(event));
  ATHANOR_CHECK_OK(parts_.store.Create(row, lines));
  ATHANOR_TRY(auto* open, OpenStudy(row));
  Step(*open);
  return Created{row.id, row.name, false};
}

Result<StudyRecord> Studies::Find(const std::string& reference) {
  ATHANOR_TRY(const auto row, parts_.store.Resolve(reference));
  if (const auto open = open_.find(row.id); open != open_.end()) return open->second->record;
  ATHANOR_TRY(const auto lines, parts_.store.Lines(row.id));
  return Replay(row, lines);
}

void Studies::Show(std::string reference, uint64_t after, Millis wait, Shown done) {
  const bool taken = OnWorker([this, reference = std::move(reference), after, wait, done] {
    auto found = Find(reference);
    if (!found || wait.count() <= 0 || found->lines > after || IsOver(found->state)) {
      return OnLoop([found, done] { done(found); });
    }
    static uint64_t next = 0;
    const auto id = ++next;
    waiters_.push_back({found->id, after, id, done});
    OnLoop([this, wait, id] {
      parts_.executor.After(wait, [this, alive = alive_, id] {
        if (!*alive) return;
        (void)OnWorker([this, id] {
          for (size_t i = 0; i < waiters_.size(); ++i) {
            if (waiters_[i].id != id) continue;
            const auto waiter = waiters_[i];
            waiters_.erase(waiters_.begin() + static_cast<long>(i));
            auto now = Find(waiter.study.ToString());
            return OnLoop([now, waiter] { waiter.done(now); });
          }
        });
      });
    });
  });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

void Studies::Tell(const StudyRecord& record) {
  for (size_t i = 0; i < waiters_.size();) {
    if (waiters_[i].study != record.id || waiters_[i].after >= record.lines) {
      ++i;
      continue;
    }
    OnLoop([record, done = waiters_[i].done] { done(record); });
    waiters_.erase(waiters_.begin() + static_cast<long>(i));
  }
}

void Studies::List(std::function<void(Result<std::vector<StudyRecord>>)> done) {
  const bool taken = OnWorker([this, done] {
    auto all = [&]() -> Result<std::vector<StudyRecord>> {
      ATHANOR_TRY(const auto rows, parts_.store.List());
      std::vector<StudyRecord> out;
      for (const auto& row : rows) {
        ATHANOR_TRY(auto record, Find(row.id.ToString()));
        out.push_back(std::move(record));
      }
      return out;
    }();
    OnLoop([all, done] { done(all); });
  });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

Result<Studies::Open*> Studies::ForChange(const std::string& reference, bool over_too) {
  ATHANOR_TRY(const auto row, parts_.store.Resolve(reference));
  if (const auto open = open_.find(row.id); open != open_.end()) return open->second.get();
  if (!over_too) {
    return Conflict("the study " + row.name + " is over: " + row.state,
                    "ath tune show " + ShellQuote(row.name));
  }
  return OpenStudy(row);
}

void Studies::StopStudy(std::string reference, std::string who, Shown done) {
  const bool taken = OnWorker([this, reference = std::move(reference), who = std::move(who), done] {
    auto stopped = [&]() -> Result<StudyRecord> {
      ATHANOR_TRY(auto* open, ForChange(reference, false));
      const auto id = open->record.id;
      if (open->record.state == StudyState::kRunning) {
        auto event = EventOf(StudyEvent::Kind::kFinishing, parts_.clock.Wall());
        event.finish = StudyState::kStopped;
        event.cause = {"user_stop", "stopped by " + who,
                       "ath tune extend " + ShellQuote(open->record.spec.name) + " --max-trials N",
                       ""};
        ATHANOR_CHECK_OK(Record(*open, std::move(event)));
        Step(*open);
      }
      return Find(id.ToString());
    }();
    OnLoop([stopped, done] { done(stopped); });
  });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

void Studies::Extend(std::string reference, Json changes, Shown done) {
  const bool taken =
      OnWorker([this, reference = std::move(reference), changes = std::move(changes), done] {
        auto extended = [&]() -> Result<StudyRecord> {
          ATHANOR_TRY(auto* open, ForChange(reference, true));
          const auto id = open->record.id;
          StudySpec tried = open->record.spec;
          ATHANOR_CHECK_OK(ChangeStudySpec(tried, changes));
          if (open->record.state == StudyState::kFinishing) {
            return Conflict("the study is just ending",
                            "wait for its trials: ath tune show " + ShellQuote(tried.name));
          }
          auto event = EventOf(StudyEvent::Kind::kChanged, parts_.clock.Wall());
          event.changes = DumpJson(changes);
          ATHANOR_CHECK_OK(Record(*open, std::move(event)));
          if (changes.contains("ranges"))
            ATHANOR_CHECK_OK(open->session->ChangeRanges(changes["ranges"]));
          Step(*open);
          return Find(id.ToString());
        }();
        OnLoop([extended, done] { done(extended); });
      });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

void Studies::Add(std::string reference, Json params, Shown done) {
  const bool taken =
      OnWorker([this, reference = std::move(reference), params = std::move(params), done] {
        auto added = [&]() -> Result<StudyRecord> {
          ATHANOR_TRY(auto* open, ForChange(reference, false));
          const auto id = open->record.id;
          if (open->record.state != StudyState::kRunning) {
            return Conflict("the study is just ending",
                            "ath tune show " + ShellQuote(open->record.spec.name));
          }
          ATHANOR_TRY(const auto search_id, open->session->ImportRunning(params));
          auto event = EventOf(StudyEvent::Kind::kAsked, parts_.clock.Wall(),
                               static_cast<int64_t>(open->record.trials.size()) + 1);
          event.search_id = search_id;
          event.params = DumpJson(params);
          event.own = true;
          ATHANOR_CHECK_OK(Record(*open, std::move(event)));
          Step(*open);
          return Find(id.ToString());
        }();
        OnLoop([added, done] { done(added); });
      });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

void Studies::Remove(std::string reference, Shown done) {
  const bool taken = OnWorker([this, reference = std::move(reference), done] {
    auto removed = [&]() -> Result<StudyRecord> {
      ATHANOR_TRY(auto record, Find(reference));
      if (!IsOver(record.state)) {
        return Conflict("the study " + record.spec.name + " is not over",
                        "ath tune stop " + ShellQuote(record.spec.name));
      }
      ATHANOR_CHECK_OK(parts_.store.Remove(record.id));
      return record;
    }();
    OnLoop([removed, done] { done(removed); });
  });
  if (!taken) done(Fail(ErrorCode::kUnavailable, "the server is stopping", "try again"));
}

Status Studies::Record(Open& open, StudyEvent event) {
  ATHANOR_CHECK_OK(Apply(open.record, event));
  if (event.kind == StudyEvent::Kind::kEnded || event.kind == StudyEvent::Kind::kPromoted)
    open.referee.Replay(event);
  open.lines.push_back(WriteEvent(event));
  return Ok();
}

Status Studies::Flush(Open& open) {
  if (open.lines.empty()) return Ok();
  ATHANOR_CHECK_OK(parts_.store.Append(open.record.id, open.stored, open.lines,
                                       NameOf(open.record.state), !IsOver(open.record.state),
                                       parts_.clock.Wall()));
  open.stored += open.lines.size();
  open.lines.clear();
  Tell(open.record);
  return Ok();
}

void Studies::Step(Open& open) {
  const auto id = open.record.id;
  Status status;
  for (bool more = true; more && status;) status = StepOnce(open, more);
  if (!status) return GiveUp(id, status.error());
  if (IsOver(open.record.state)) open_.erase(id);
}

Status Studies::StepOnce(Open& open, bool& more) {
  auto plan =
      Decide(open.record, open.spent_micros, parts_.clock.Wall(), open.referee.Promotable());
  more = plan.event || plan.ask > 0;
  // While its order is on its way, a trial cannot be dropped: its job will come, and is then
  // stopped like the others.
  if (plan.event && plan.event->kind == StudyEvent::Kind::kEnded &&
      open.submitting.contains(plan.event->trial)) {
    more = false;
    plan.event.reset();
  }
  if (plan.event) return Record(open, std::move(*plan.event));
  if (plan.ask > 0) return AskFor(open, plan.ask);
  ATHANOR_CHECK_OK(Flush(open));
  Perform(open, plan);
  return Ok();
}

Status Studies::AskFor(Open& open, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    auto asked = open.session->Ask();
    // A space that is used up returns its best trial again: nothing new is learnt from it.
    if ((!asked && asked.error().code == ErrorCode::kExhausted) || (asked && asked->repeated)) {
      if (asked) ATHANOR_CHECK_OK(open.session->Tell(asked->id, std::nullopt));
      return Record(open, EventOf(StudyEvent::Kind::kExhausted, parts_.clock.Wall()));
    }
    if (!asked) return Fail(asked.error());
    auto event = EventOf(StudyEvent::Kind::kAsked, parts_.clock.Wall(),
                         static_cast<int64_t>(open.record.trials.size()) + 1);
    event.search_id = asked->id;
    event.params = DumpJson(open.session->space().ToJson(asked->values));
    ATHANOR_CHECK_OK(Record(open, std::move(event)));
  }
  return Ok();
}

void Studies::Perform(Open& open, const Plan& plan) {
  for (const auto number : plan.submit) {
    if (!open.submitting.insert(number).second) continue;
    const auto& trial = *open.record.Find(number);
    OnLoop([this, order = OrderOf(open.record, trial)] {
      if (stopped_) return;
      parts_.trials.Submit(order, [this, alive = alive_, order](const Result<JobId>& job) {
        if (*alive) Submitted(order, job);
      });
    });
  }
  for (const auto number : plan.stop) {
    if (!open.stopping.insert(number).second) continue;
    const auto& trial = *open.record.Find(number);
    const auto job = JobId::Parse(trial.job);
    if (!job) continue;
    const Cause over{"trial_stopped", "the study ended: " + open.record.cause.text,
                     "ath tune show " + ShellQuote(open.record.spec.name), ""};
    OnLoop([this, job = *job, cause = trial.stopping ? trial.cause : over] {
      if (!stopped_) parts_.trials.Stop(job, cause);
    });
  }
}

void Studies::Submitted(const TrialOrder& order, const Result<JobId>& job) {
  (void)OnWorker([this, order, job] {
    const auto found = open_.find(order.study);
    if (found == open_.end()) return;
    auto& open = *found->second;
    open.submitting.erase(order.trial);
    if (!job) {
      // An error that may pass (no room, no answer) is tried again; any other would only come back.
      if (RowOf(job.error().code).retry) {
        return OnLoop([this, id = order.study] {
          parts_.executor.After(kRetry, [this, alive = alive_, id] {
            if (!*alive) return;
            (void)OnWorker([this, id] {
              if (const auto again = open_.find(id); again != open_.end()) Step(*again->second);
            });
          });
        });
      }
      if (open.record.state == StudyState::kRunning) {
        auto event = EventOf(StudyEvent::Kind::kFinishing, parts_.clock.Wall());
        event.finish = StudyState::kFailed;
        event.cause = {"trial_refused",
                       fmt::format("trial {} was refused: {}", order.trial, job.error().what),
                       job.error().hint, job.error().why};
        if (auto kept = Record(open, std::move(event)); !kept)
          return GiveUp(order.study, kept.error());
      }
      return Step(open);
    }
    auto event = EventOf(StudyEvent::Kind::kSubmitted, parts_.clock.Wall(), order.trial);
    event.job = job->ToString();
    if (auto kept = Record(open, std::move(event)); !kept) return GiveUp(order.study, kept.error());
    const Whose whose{order.study, order.trial, open.referee.looks(), false};
    Step(open);
    OnLoop([this, job = *job, whose] {
      jobs_.emplace(job, whose);
      // It may have ended, or reported, before it was watched.
      JobChanged(job, true);
      PointsCame(job);
    });
  });
}

void Studies::JobChanged(JobId job, bool over) {
  const auto whose = jobs_.find(job);
  if (whose == jobs_.end() || !over) return;
  (void)OnWorker([this, whose = whose->second] {
    const auto open = open_.find(whose.study);
    if (open == open_.end()) return;
    auto looked = LookAt(*open->second, whose.trial);
    if (!looked) return GiveUp(whose.study, looked.error());
    Step(*open->second);
  });
}

void Studies::PointsCame(JobId job) {
  const auto whose = jobs_.find(job);
  if (whose == jobs_.end() || !whose->second.looks || whose->second.pending) return;
  // However many batches come, one look is on its way; points after it begins ask for another.
  whose->second.pending = true;
  (void)OnWorker([this, job, whose = whose->second] {
    OnLoop([this, job] {
      if (const auto known = jobs_.find(job); known != jobs_.end()) known->second.pending = false;
    });
    const auto open = open_.find(whose.study);
    if (open == open_.end()) return;
    auto looked = LookAt(*open->second, whose.trial);
    if (!looked) return GiveUp(whose.study, looked.error());
    Step(*open->second);
  });
}

Status Studies::LookAt(Open& open, int64_t number) {
  const auto* trial = open.record.Find(number);
  if (!trial || trial->state != TrialState::kRunning) return Ok();
  const auto job = JobId::Parse(trial->job);
  if (!job) return Ok();
  auto sight = parts_.trials.Look(*job, open.record.spec.metric);
  if (!sight && sight.error().code == ErrorCode::kNotFound) {
    // Someone removed the job; its end is unknown, and its parameters are not tried again.
    sight = TrialSight{};
    sight->state = JobState::kFailed;
    sight->cause = {"job_removed", "its job was removed", "", ""};
  }
  if (!sight) return Fail(sight.error());
  if (open.referee.looks()) ATHANOR_CHECK_OK(ReportTrial(open, *trial, *sight));
  if (!IsTerminal(sight->state)) return Ok();
  OnLoop([this, job = *job] { jobs_.erase(job); });
  open.stopping.erase(number);
  return EndTrial(open, *open.record.Find(number), *sight);
}

// New points go to the journal as far as they were judged: a replay then gives the same verdict.
// Points after a verdict are left out, as the trial is to stop there.
Status Studies::ReportTrial(Open& open, const TrialRecord& trial, const TrialSight& sight) {
  if (trial.stopping) return Ok();
  const auto last = trial.curve.empty() ? INT64_MIN : trial.curve.back().step;
  auto event = EventOf(StudyEvent::Kind::kReported, parts_.clock.Wall(), trial.number);
  std::optional<Cause> cause;
  for (const auto& point : sight.points) {
    if (point.step <= last) continue;
    event.points.push_back(point);
    cause = open.referee.Report(trial.number, point);
    // One that has ended anyway is not stopped: the rest of its points count, too.
    if (cause && !IsTerminal(sight.state)) break;
  }
  if (event.points.empty()) return Ok();
  const auto number = trial.number;
  ATHANOR_CHECK_OK(Record(open, std::move(event)));
  if (!cause || IsTerminal(sight.state)) return Ok();
  auto stop = EventOf(StudyEvent::Kind::kStopping, parts_.clock.Wall(), number);
  stop.cause = std::move(*cause);
  return Record(open, std::move(stop));
}

Status Studies::EndTrial(Open& open, const TrialRecord& trial, const TrialSight& sight) {
  TrialEnd end{sight.state, sight.cause, {}, {}, sight.cost_micros, sight.held_ms};
  // A trial that continued after a pause has earlier points with its earlier jobs.
  auto points = trial.promotions > 0 ? trial.curve : std::vector<tune::CurvePoint>();
  points.insert(points.end(), sight.points.begin(), sight.points.end());
  for (const auto& point : points) {
    const bool better = !end.value || !open.record.spec.best_value || !std::isfinite(*end.value) ||
                        Better(open.record.spec, point.value, *end.value);
    if (!better) continue;
    end.value = point.value;
    end.step = point.step;
  }
  const auto now = parts_.clock.Wall();
  auto event = JudgeEnd(open.record, trial.number, end, now);
  const auto job = JobId::Parse(trial.job);
  const auto name = fmt::format("{}-{}", open.record.spec.name, trial.number);
  if (event.told) {
    const auto failed = event.outcome == TrialState::kFailed;
    ATHANOR_CHECK_OK(open.session->Tell(trial.search_id, failed ? std::nullopt : event.value));
  }
  const bool never = NeverReported(open.record, event);
  ATHANOR_CHECK_OK(Record(open, event));
  if (!never || open.record.state != StudyState::kRunning) return Ok();
  const auto words = job ? parts_.trials.Listen(*job) : LastWords{};
  auto failed = EventOf(StudyEvent::Kind::kFinishing, now);
  failed.finish = StudyState::kFailed;
  const auto& metric = open.record.spec.metric;
  failed.cause = {
      "no_objective",
      fmt::format("trial {} ended without ever reporting the metric {}", event.trial, metric),
      "athanor.log(\"" + metric +
          "\", value)    in the script, or in the job file\n"
          "metrics: [{name: " +
          metric + ", regex: '" + metric + "=([0-9.]+)'}]\nath logs " + ShellQuote(name),
      words.lines};
  if (!words.metrics.empty()) {
    failed.cause.text += "; it reported " + Join(words.metrics, ", ");
    if (auto near = Nearest(metric, words.metrics)) {
      failed.cause.hint = "did you mean " + *near + "?\n" + failed.cause.hint;
    }
  }
  return Record(open, std::move(failed));
}

// What could not be stored did not happen. The open study may be ahead of its journal, so it is
// dropped, and read again from the journal a little later.
void Studies::GiveUp(StudyId id, const Error& error) {
  parts_.log.Log(LogLevel::kError, "a study waits",
                 {{"study", id.ToString()}, {"why", error.what}});
  open_.erase(id);
  OnLoop([this, id] {
    if (stopped_) return;
    parts_.executor.After(kRetry, [this, alive = alive_, id] {
      if (!*alive) return;
      (void)OnWorker([this, id] {
        if (open_.contains(id)) return;
        auto row = parts_.store.Resolve(id.ToString());
        if (!row || !row->live) return;
        auto open = OpenStudy(*row);
        if (!open) return GiveUp(id, open.error());
        Step(**open);
      });
    });
  });
}

// Money and time run out without any event that would make a study look.
void Studies::Tick() {
  if (stopped_) return;
  std::map<StudyId, int64_t> spent;
  for (const auto& [job, whose] : jobs_) spent[whose.study] += parts_.trials.LiveCostMicros(job);
  if (!spent.empty()) {
    (void)OnWorker([this, spent] {
      for (const auto& [id, micros] : spent) {
        const auto open = open_.find(id);
        if (open == open_.end()) continue;
        open->second->spent_micros = micros;
        Step(*open->second);
      }
    });
  }
  tick_ = parts_.executor.After(kTick, [this, alive = alive_] {
    if (*alive) Tick();
  });
}

}  // namespace athanor
