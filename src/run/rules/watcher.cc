#include "run/rules/watcher.h"

#include <utility>

#include "base/exec/mutex.h"
#include "base/text/text.h"
#include "job/point.h"
#include "run/ship/shipper.h"

namespace athanor {
namespace {

Cause CauseOfFiring(const Firing& firing, const std::string& job, CauseKind kind) {
  std::string text = firing.rule + " fired on " + firing.metric;
  if (firing.step) text += " at step " + std::to_string(*firing.step);
  text += ": " + firing.value;
  if (!firing.threshold.empty()) text += " (expected " + firing.threshold + ")";
  return {kind, text, "ath metrics " + ShellQuote(job) + " " + ShellQuote(firing.metric),
          firing.advice};
}

// Who logged a point, the best first: what a script does on purpose is believed before what is read
// off its files and lines.
enum Source : int { kScript, kMlflow, kEventFile, kGuess };

Source SourceOf(uint32_t channel) {
  switch (channel & kGuessChannel) {
    case kGuessChannel:
      return kGuess;
    case kRegexChannel:
      return kScript;
    case kEventChannel:
      return kEventFile;
    default:
      return IsOfKeptCalls(channel) ? kMlflow : kScript;
  }
}

// MLflow's clients have a thread that logs how busy the machine is, also when the script hangs.
bool IsOfMachine(const Point& point) { return StartsWith(point.name, "system/"); }

// As many names as a job may have.
constexpr size_t kMostNames = 100'000;
// How many steps late a checkpoint may be stored.
constexpr size_t kMostValues = 100'000;

}  // namespace

Watcher::Watcher(const AttemptPlan& plan, const Clock& clock, Actions actions)
    : plan_(plan), clock_(clock), actions_(std::move(actions)), hang_(plan.spec.limits) {
  // Checked at submit; a newer server's rule that is not known here never fires.
  if (auto rules = RuleSet::Make(plan.spec.rules); rules && !rules->empty()) {
    rules_ = std::move(*rules);
  }
}

void Watcher::OnPoints(const PointBatch& batch) {
  std::vector<Firing> firings;
  {
    MutexLock lock(mutex_);
    for (const auto& item : batch.items) See(batch, item.point, firings);
  }
  Act(firings);
}

void Watcher::See(const PointBatch& batch, const Point& point, std::vector<Firing>& firings) {
  const Source source = SourceOf(batch.channel);
  const bool mlflow = source == kMlflow;
  if (!mlflow || !IsOfMachine(point)) {
    ++points_;
    // What comes from event files is late: not where the script is now. MLflow's clients send step
    // 0 for none.
    const bool tells = source != kEventFile && !(mlflow && point.step == 0);
    if (point.step && tells) step_ = point.step;
  }
  auto known = names_.find(point.name);
  if (known == names_.end() && names_.size() < kMostNames) {
    known = names_.emplace(point.name, Name{source, false}).first;
  }
  auto step = point.step;
  if (known != names_.end()) {
    if (source > known->second.source) return;
    known->second.source = source;
    // The second point at step 0 has none, as the store sees it.
    if (mlflow && step == 0 && std::exchange(known->second.began, true)) step.reset();
  }
  if (point.step && batch.rank == 0 && point.name == plan_.spec.checkpoints.best_metric) {
    values_[*point.step] = point.value;
    if (values_.size() > kMostValues) values_.erase(values_.begin());
  }
  if (!rules_) return;
  rules_->Feed({point.name, Rank{batch.rank}, step, point.value, Watched(),
                WallTime{point.wall_ns / 1'000'000}},
               firings);
}

void Watcher::OnOutput(uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_ += bytes;
}

void Watcher::Tick(uint64_t cpu_ns, bool held_up) {
  std::vector<Firing> firings;
  std::optional<Hang> hang;
  {
    MutexLock lock(mutex_);
    const auto now = clock_.Monotonic();
    if (held_up_since_) held_up_ += now - *held_up_since_;
    held_up_since_ = held_up ? std::optional(now) : std::nullopt;
    if (rules_) rules_->Tick(Watched(), firings);
    hang = hang_.Sample({Watched(), bytes_, points_, cpu_ns, step_});
  }
  Act(firings);
  if (hang) actions_.hung(*hang);
}

std::optional<int64_t> Watcher::last_step() const {
  MutexLock lock(mutex_);
  return step_;
}

std::optional<double> Watcher::ValueAt(int64_t step) const {
  MutexLock lock(mutex_);
  const auto after = values_.upper_bound(step);
  if (after == values_.begin()) return std::nullopt;
  return std::prev(after)->second;
}

// Acts at once, then reports.
void Watcher::Act(const std::vector<Firing>& firings) {
  for (const auto& firing : firings) {
    if (firing.action == "stop")
      actions_.stop(CauseOfFiring(firing, plan_.spec.name, CauseKind::kRuleStop));
    if (firing.action == "retry") {
      actions_.stop(CauseOfFiring(firing, plan_.spec.name, CauseKind::kRuleRetry));
    }
    actions_.fired(firing);
  }
}

}  // namespace athanor
