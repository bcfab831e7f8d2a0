#include "study/decide.h"

#include <algorithm>
#include <cmath>

#include "base/text/format.h"
#include "base/text/text.h"
#include "job/causes.h"

namespace athanor {
namespace {

using EventKind = StudyEvent::Kind;

constexpr size_t kLeastForConvergence = 20;

StudyEvent Finish(StudyState as, std::string kind, std::string text, std::string hint,
                  WallTime now) {
  StudyEvent event;
  event.kind = EventKind::kFinishing;
  event.at = now;
  event.finish = as;
  event.cause = {std::move(kind), std::move(text), std::move(hint), ""};
  return event;
}

// Values of trials that are done, in the order they were asked for.
std::vector<double> DoneValues(const StudyRecord& record) {
  std::vector<double> values;
  for (const auto& trial : record.trials) {
    if (trial.state == TrialState::kDone && trial.value) values.push_back(*trial.value);
  }
  return values;
}

// Trials over since the best one was found, in the order they ended.
int64_t SinceBest(const StudyRecord& record) {
  const auto* best = record.Best();
  if (!best) return 0;
  int64_t since = 0;
  for (const auto& trial : record.trials) {
    const bool over = IsOver(trial.state) || trial.state == TrialState::kPaused;
    if (over && (trial.ended > best->ended ||
                 (trial.ended == best->ended && trial.number > best->number))) {
      ++since;
    }
  }
  return since;
}

std::optional<StudyEvent> FailedEnough(const StudyRecord& record, WallTime now) {
  const auto failed = static_cast<int64_t>(record.Count(TrialState::kFailed));
  for (const auto& trial : record.trials) {
    if (trial.losses > kMostLosses) {
      return Finish(
          StudyState::kFailed, "trial_lost",
          fmt::format("trial {} was lost {} times by the platform", trial.number, trial.losses),
          "ath why " + ShellQuote(trial.job), now);
    }
    // Once there is a value, failures are for the search to learn from.
    if (trial.value && trial.state != TrialState::kRunning) return std::nullopt;
  }
  if (failed < record.spec.max_failures) return std::nullopt;
  const auto last =
      std::find_if(record.trials.rbegin(), record.trials.rend(),
                   [](const auto& trial) { return trial.state == TrialState::kFailed; });
  auto event = Finish(
      StudyState::kFailed, "all_failed", fmt::format("the first {} trials all failed", failed),
      "ath why " + ShellQuote(fmt::format("{}-{}", record.spec.name, last->number)), now);
  event.cause.detail = last->cause.text;
  return event;
}

// The first limit that is reached; the order decides which one is named if there are several. The
// last two wait for what runs or may still continue, the others stop it.
std::optional<StudyEvent> Enough(const StudyRecord& record, int64_t spent, bool promotable,
                                 WallTime now) {
  const auto& spec = record.spec;
  if (auto failed = FailedEnough(record, now)) return failed;
  const auto* best = record.Best();
  const auto extend = "ath tune extend " + ShellQuote(spec.name) + " ";
  if (spec.target && best && !Better(spec, *spec.target, *best->value)) {
    return Finish(StudyState::kCompleted, "target_reached",
                  fmt::format("trial {} reached the target: {} against {}", best->number,
                              *best->value, *spec.target),
                  "", now);
  }
  if (spec.budget_micros > 0 && record.CostMicros() + spent >= spec.budget_micros) {
    return Finish(
        StudyState::kCompleted, "budget_spent",
        fmt::format("the budget of {:.2f} is spent", static_cast<double>(spec.budget_micros) / 1e6),
        extend + "--money", now);
  }
  if (spec.budget_time.count() > 0 && now.ms - record.created.ms >= spec.budget_time.count()) {
    return Finish(StudyState::kCompleted, "time_spent",
                  "its time is over: " + HumanDuration(spec.budget_time), extend + "--time", now);
  }
  if (spec.no_improvement > 0 && SinceBest(record) >= spec.no_improvement) {
    return Finish(StudyState::kCompleted, "no_improvement",
                  fmt::format("{} trials in a row were no better", spec.no_improvement), "", now);
  }
  if (spec.converge && Converged(record)) {
    return Finish(StudyState::kCompleted, "converged", "more trials are unlikely to find better",
                  "", now);
  }
  const auto trials = static_cast<int64_t>(record.trials.size());
  if (record.Live() > 0 || promotable) return std::nullopt;
  if (record.exhausted) {
    return Finish(StudyState::kCompleted, "exhausted",
                  fmt::format("all {} points of the space were tried", trials), "", now);
  }
  if (trials >= spec.max_trials) {
    return Finish(StudyState::kCompleted, "max_trials", fmt::format("{} trials were made", trials),
                  extend + fmt::format("--max-trials {}", 2 * trials), now);
  }
  return std::nullopt;
}

}  // namespace

Plan Decide(const StudyRecord& record, int64_t spent_micros, WallTime now,
            std::optional<int64_t> promotable) {
  Plan plan;
  if (IsOver(record.state)) return plan;
  if (record.state == StudyState::kFinishing) {
    for (const auto& trial : record.trials) {
      if (trial.state == TrialState::kRunning) plan.stop.push_back(trial.number);
      if (trial.state != TrialState::kAsked || plan.event) continue;
      // It has no job, so there is nothing to wait for.
      StudyEvent dropped;
      dropped.kind = EventKind::kEnded;
      dropped.at = now;
      dropped.trial = trial.number;
      dropped.outcome = TrialState::kStopped;
      dropped.value = trial.value;  // of a trial that was to continue
      dropped.step = trial.step;
      dropped.cause = {"study_over", "the study ended before it began", "", ""};
      plan.event = std::move(dropped);
    }
    if (record.Live() == 0) {
      StudyEvent finished;
      finished.kind = EventKind::kFinished;
      finished.at = now;
      plan.event = std::move(finished);
    }
    return plan;
  }
  if ((plan.event = Enough(record, spent_micros, promotable.has_value(), now))) return plan;
  const auto live = static_cast<int64_t>(record.Live());
  // The promotable trial may still run, on its way to its pause. Then it is promoted later, and
  // free places go to others meanwhile.
  if (promotable && live < record.spec.parallel &&
      record.Find(*promotable)->state == TrialState::kPaused) {
    StudyEvent promoted;
    promoted.kind = EventKind::kPromoted;
    promoted.at = now;
    promoted.trial = *promotable;
    plan.event = std::move(promoted);
    return plan;
  }
  for (const auto& trial : record.trials) {
    if (trial.state == TrialState::kAsked) plan.submit.push_back(trial.number);
    if (trial.state == TrialState::kRunning && trial.stopping) plan.stop.push_back(trial.number);
  }
  if (!record.exhausted) {
    const auto trials = static_cast<int64_t>(record.trials.size());
    plan.ask = std::max<int64_t>(
        0, std::min(record.spec.parallel - live, record.spec.max_trials - trials));
  }
  return plan;
}

StudyEvent JudgeEnd(const StudyRecord& record, int64_t number, const TrialEnd& end, WallTime now) {
  const auto* trial = record.Find(number);
  StudyEvent event;
  event.kind = EventKind::kEnded;
  event.at = now;
  event.trial = number;
  event.cause = end.cause;
  event.cost_micros = end.cost_micros;
  event.held_ms = end.held_ms;
  const bool usable = end.value && std::isfinite(*end.value);
  if (usable) {
    event.value = end.value;
    event.step = end.step;
  }
  // The platform's fault says nothing about the parameters: they get another try.
  const auto* cause = FindCause(end.cause.kind);
  if (end.state == JobState::kFailed && cause && cause->infrastructure) {
    event.kind = EventKind::kLost;
    event.value.reset();
    return event;
  }
  const bool pausing = trial->stopping && trial->cause.Is(CauseKind::kTrialPaused);
  if (pausing && end.state != JobState::kFailed && usable) {
    event.told = !trial->told;
    // It reached its end before the pause stopped it.
    if (end.state == JobState::kCompleted && end.step.value_or(0) >= record.spec.early.last) {
      event.outcome = TrialState::kDone;
      return event;
    }
    event.kind = record.state == StudyState::kRunning ? EventKind::kPaused : EventKind::kEnded;
    event.outcome = TrialState::kStopped;
    event.cause = trial->cause;
    return event;
  }
  if (end.state == JobState::kCompleted && !trial->stopping) {
    event.outcome = usable ? TrialState::kDone : TrialState::kFailed;
    event.told = !trial->told;
    if (!end.value) {
      event.cause = {"no_objective", "it ended without reporting " + record.spec.metric, "", ""};
    } else if (!usable) {
      event.cause = {"objective_not_finite",
                     fmt::format("its last {} was {}", record.spec.metric, *end.value), "", ""};
    }
    return event;
  }
  if (end.state == JobState::kFailed) {
    event.outcome = TrialState::kFailed;
    event.value.reset();
    event.told = !trial->told;
    return event;
  }
  // Stopped: by a rule, a person, a limit, or with the study. The search still learns the value it
  // reached; one that a rule stopped before it had any counts as failed.
  event.outcome = TrialState::kStopped;
  if (trial->stopping) event.cause = trial->cause;
  event.told = usable || trial->stopping;
  if (event.told && !usable) event.outcome = TrialState::kFailed;
  event.told = event.told && !trial->told;
  return event;
}

bool NeverReported(const StudyRecord& record, const StudyEvent& ended) {
  if (ended.kind != EventKind::kEnded || !ended.cause.Is(CauseKind::kNoObjective)) return false;
  return std::none_of(record.trials.begin(), record.trials.end(),
                      [](const TrialRecord& trial) { return trial.value.has_value(); });
}

bool Converged(const StudyRecord& record) {
  const auto values = DoneValues(record);
  if (values.size() < kLeastForConvergence) return false;
  const size_t tail = std::max<size_t>(10, values.size() / 3);
  auto best_of = [&](size_t count) {
    double best = values[0];
    for (size_t i = 1; i < count; ++i) {
      if (Better(record.spec, values[i], best)) best = values[i];
    }
    return best;
  };
  auto sorted = values;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(sorted.size() / 2),
                   sorted.end());
  const double spread = std::fabs(sorted[sorted.size() / 2] - best_of(values.size()));
  return std::fabs(best_of(values.size()) - best_of(values.size() - tail)) <= 0.01 * spread;
}

struct Referee::Parts {
  explicit Parts(const EarlyStopSpec& early)
      : asha(Options(early)), hyperband(Options(early)), median(early.first) {}

  static tune::AshaOptions Options(const EarlyStopSpec& early) {
    tune::AshaOptions options;
    options.first = std::max<int64_t>(1, early.first);
    options.last = std::max(options.first + 1, early.last);
    options.eta = early.eta;
    if (early.promote) options.form = tune::AshaOptions::Form::kPromotion;
    return options;
  }

  tune::Asha asha;
  tune::Hyperband hyperband;
  tune::MedianRule median;
  std::map<int64_t, std::vector<tune::CurvePoint>> curves;
  std::optional<double> best;  // lower is better
};

Referee::Referee(const StudySpec& spec)
    : spec_(spec), parts_(std::make_unique<Parts>(spec.early)) {}
Referee::~Referee() = default;
Referee::Referee(Referee&&) noexcept = default;
Referee& Referee::operator=(Referee&&) noexcept = default;

std::optional<Cause> Referee::Report(int64_t trial, const tune::CurvePoint& point) {
  const double value = spec_.maximize ? -point.value : point.value;
  const auto cause = [&](std::string why) {
    return Cause{"trial_stopped",
                 fmt::format("stopped early by the study at step {}: {}", point.step, why),
                 "ath tune show " + ShellQuote(spec_.name), ""};
  };
  const auto of_rung = [&](tune::Verdict verdict, const char* whose) -> std::optional<Cause> {
    if (verdict == tune::Verdict::kGoOn) return std::nullopt;
    if (verdict == tune::Verdict::kStop) {
      return cause(fmt::format("not among the best 1/{:g} {}", spec_.early.eta, whose));
    }
    return Cause{CauseKind::kTrialPaused,
                 fmt::format("paused by the study at step {}: the best 1/{:g} {} go on", point.step,
                             spec_.early.eta, whose),
                 "ath tune show " + ShellQuote(spec_.name), ""};
  };
  switch (spec_.early.rule) {
    case EarlyStopSpec::Rule::kNone:
      return std::nullopt;
    case EarlyStopSpec::Rule::kAsha:
      return of_rung(parts_->asha.Report(trial, point.step, value), "that came this far");
    case EarlyStopSpec::Rule::kHyperband:
      return of_rung(parts_->hyperband.Report(trial, point.step, value), "of its bracket");
    case EarlyStopSpec::Rule::kMedian:
      if (parts_->median.Report(trial, point.step, value) == tune::Verdict::kGoOn) {
        return std::nullopt;
      }
      return cause("its mean so far is worse than the median of finished trials");
    case EarlyStopSpec::Rule::kCurve:
      break;
  }
  auto& curve = parts_->curves[trial];
  curve.push_back({point.step, value});
  if (!parts_->best || point.step < spec_.early.first) return std::nullopt;
  const auto chance = tune::ChanceToBeat(curve, spec_.early.last, *parts_->best,
                                         spec_.seed.value_or(0) + static_cast<uint64_t>(trial));
  if (!chance || *chance >= spec_.early.chance) return std::nullopt;
  return cause(fmt::format("its curve beats the best with a chance of {:.0f} %", *chance * 100));
}

std::optional<int64_t> Referee::Promotable() const {
  if (!spec_.early.promote) return std::nullopt;
  // Asked of a copy, because Promote() changes the rungs: that is done when the journal has it.
  const auto next = spec_.early.rule == EarlyStopSpec::Rule::kAsha
                        ? tune::Asha(parts_->asha).Promote()
                        : tune::Hyperband(parts_->hyperband).Promote();
  return next ? std::optional(next->trial) : std::nullopt;
}

void Referee::Ended(int64_t trial, TrialState outcome, std::optional<double> value) {
  if (outcome != TrialState::kDone) return;
  parts_->median.Finished(trial);
  if (!value) return;
  const double lower = spec_.maximize ? -*value : *value;
  if (!parts_->best || lower < *parts_->best) parts_->best = lower;
}

void Referee::Replay(const StudyEvent& event) {
  if (event.kind == EventKind::kReported) {
    for (const auto& point : event.points) (void)Report(event.trial, point);
  } else if (event.kind == EventKind::kEnded) {
    Ended(event.trial, event.outcome, event.value);
  } else if (event.kind == EventKind::kPromoted) {
    // The same reports came before, so it is the same trial.
    (void)(spec_.early.rule == EarlyStopSpec::Rule::kAsha ? parts_->asha.Promote()
                                                          : parts_->hyperband.Promote());
  }
}

}  // namespace athanor
