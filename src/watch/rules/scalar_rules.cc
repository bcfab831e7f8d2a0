#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "base/text/format.h"
#include "watch/rules/rule.h"

namespace athanor {
namespace {

// Beyond the window, so that a step may go back without losing what was known.
constexpr size_t kSpareHistory = 256;
constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

// What was known after a point. To take points back, entries are dropped.
struct Known {
  uint64_t points = 0;
  uint32_t run = 0;            // points in a row for which the condition was true
  std::optional<double> best;  // of values or of medians
  uint32_t since_best = 0;     // points since the best
};

struct Entry {
  int64_t step = kNoStep;
  double value = 0;
  Known known;
};

// Remembers the last points; subclasses decide what follows from the next one.
class WindowRule : public ScalarRule {
 public:
  explicit WindowRule(const RuleSpec& spec) : spec_(spec), sign_(spec.goal == "max" ? -1.0 : 1.0) {}

  Verdict Point(std::optional<int64_t> step, double value) final {
    if (step) {
      while (!entries_.empty() && entries_.back().step >= *step) entries_.pop_back();
    }
    Entry entry;
    if (!entries_.empty()) entry = entries_.back();
    if (step) entry.step = *step;
    entry.value = value;
    ++entry.known.points;
    entries_.push_back(entry);
    Verdict verdict = Judge(entries_.back().known, value);
    if (entries_.size() > spec_.window + kSpareHistory) entries_.pop_front();
    return verdict;
  }

 protected:
  // `known` is that of the point before, with this one counted; updates it.
  virtual Verdict Judge(Known& known, double value) = 0;

  // As if smaller were always better.
  double Cost(double value) const { return sign_ * value; }
  const std::deque<Entry>& entries() const { return entries_; }

  const RuleSpec spec_;
  const double sign_;

 private:
  std::deque<Entry> entries_;
};

class RunRule final : public WindowRule {
 public:
  using WindowRule::WindowRule;

 private:
  Verdict Judge(Known& known, double value) override {
    known.run = IsTrue(value) ? std::min(known.run + 1, spec_.window) : 0;
    if (known.run < spec_.window) return {};
    return {true, value, Threshold()};
  }

  bool IsTrue(double value) const {
    if (spec_.rule == "nan") return std::isnan(value);
    if (spec_.rule == "inf") return std::isinf(value);
    return spec_.rule == "above" ? value > *spec_.value : value < *spec_.value;
  }

  std::string Threshold() const {
    std::string text = spec_.rule == "nan" ? "a number" : "a finite number";
    if (spec_.rule == "above") text = "at most " + ShowValue(*spec_.value);
    if (spec_.rule == "below") text = "at least " + ShowValue(*spec_.value);
    if (spec_.window > 1) text += fmt::format(", {} points in a row", spec_.window);
    return text;
  }
};

class PlateauRule final : public WindowRule {
 public:
  using WindowRule::WindowRule;

 private:
  Verdict Judge(Known& known, double value) override {
    const bool better =
        std::isfinite(value) && (!known.best || Cost(value) < Cost(*known.best) - spec_.min_delta);
    if (better) {
      known.best = value;
      known.since_best = 0;
      return {};
    }
    // Without a best there is nothing to be better than: other rules handle that.
    if (!known.best) return {};
    known.since_best = std::min(known.since_best + 1, spec_.window);
    if (known.since_best < spec_.window) return {};
    std::string threshold = fmt::format("better than {}", ShowValue(*known.best));
    if (spec_.min_delta > 0) threshold += fmt::format(" by {}", ShowValue(spec_.min_delta));
    return {true, value, threshold + fmt::format(" within {} points", spec_.window)};
  }
};

class DivergenceRule final : public WindowRule {
 public:
  using WindowRule::WindowRule;

 private:
  Verdict Judge(Known& known, double) override {
    if (known.points < spec_.window || entries().size() < spec_.window) return {};
    const double cost = MedianCost();
    if (!known.best) {
      if (std::isfinite(cost)) known.best = sign_ * cost;
      return {};
    }
    const double best = Cost(*known.best);
    const double limit = best + std::max(*spec_.value * std::abs(best), spec_.min_delta);
    if (cost < best) known.best = sign_ * cost;
    if (!(cost > limit)) return {};
    return {true, sign_ * cost,
            fmt::format("at {} {} (best {}), median of {} points", sign_ > 0 ? "most" : "least",
                        ShowValue(sign_ * limit), ShowValue(sign_ * best), spec_.window)};
  }

  // Of an even number, the better of the two in the middle: never more alarm than the points
  // justify.
  double MedianCost() const {
    std::vector<double> costs;
    costs.reserve(spec_.window);
    for (auto at = entries().end() - spec_.window; at != entries().end(); ++at) {
      costs.push_back(std::isfinite(at->value) ? Cost(at->value)
                                               : std::numeric_limits<double>::infinity());
    }
    const auto middle = costs.begin() + (spec_.window - 1) / 2;
    std::nth_element(costs.begin(), middle, costs.end());
    return *middle;
  }
};

}  // namespace

std::unique_ptr<ScalarRule> MakeScalarRule(const RuleSpec& spec) {
  if (spec.rule == "no_progress") return nullptr;
  if (spec.rule == "plateau") return std::make_unique<PlateauRule>(spec);
  if (spec.rule == "divergence") return std::make_unique<DivergenceRule>(spec);
  return std::make_unique<RunRule>(spec);
}

std::string ShowValue(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

}  // namespace athanor
