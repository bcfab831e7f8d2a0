#include "run/rules/watcher.h"

#include "base/text/text.h"
#include "run/ship/shipper.h"

namespace athanor {
namespace {

Cause CauseOfFiring(const Firing& firing, const std::string& job, const char* kind) {
  std::string text = firing.rule + " fired on " + firing.metric;
  if (firing.step) text += " at step " + std::to_string(*firing.step);
  text += ": " + firing.value;
  if (!firing.threshold.empty()) text += " (expected " + firing.threshold + ")";
  return {kind, text, "ath metrics " + ShellQuote(job) + " " + ShellQuote(firing.metric), firing.advice};
}

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
    std::lock_guard lock(mutex_);
    points_ += batch.items.size();
    for (const auto& item : batch.items) {
      const auto& point = item.point;
      // What comes from event files is late: not where the script is now.
      if (point.step && !(batch.channel & kEventChannel)) step_ = point.step;
      if (point.step && batch.rank == 0 && point.name == plan_.spec.checkpoints.best_metric) {
        values_[*point.step] = point.value;
        if (values_.size() > kMostValues) values_.erase(values_.begin());
      }
      if (!rules_) continue;
      rules_->Feed({point.name, Rank{batch.rank}, point.step, point.value, Watched(),
                    WallTime{point.wall_ns / 1'000'000}},
                   firings);
    }
  }
  Act(firings);
}

void Watcher::OnOutput(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  bytes_ += bytes;
}

void Watcher::Tick(uint64_t cpu_ns, bool held_up) {
  std::vector<Firing> firings;
  std::optional<Hang> hang;
  {
    std::lock_guard lock(mutex_);
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
  std::lock_guard lock(mutex_);
  return step_;
}

std::optional<double> Watcher::ValueAt(int64_t step) const {
  std::lock_guard lock(mutex_);
  const auto after = values_.upper_bound(step);
  if (after == values_.begin()) return std::nullopt;
  return std::prev(after)->second;
}

// Acts at once, then reports.
void Watcher::Act(const std::vector<Firing>& firings) {
  for (const auto& firing : firings) {
    if (firing.action == "stop") actions_.stop(CauseOfFiring(firing, plan_.spec.name, "rule_stop"));
    if (firing.action == "retry") {
      actions_.stop(CauseOfFiring(firing, plan_.spec.name, "rule_retry"));
    }
    actions_.fired(firing);
  }
}

}  // namespace athanor
