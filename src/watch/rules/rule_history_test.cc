// Random histories against an evaluator that keeps every point and works each
// answer out from the beginning. Every failure prints its seed; ATHANOR_SEED=n
// runs that history alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>

#include "job/rules.h"
#include "watch/rules/rule.h"
#include "watch/rules/rule_set.h"

namespace athanor {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Points = std::vector<RulePoint>;

// The points of one stream that still count: those not taken back by a later one.
std::vector<double> Surviving(const Points& points) {
  std::vector<std::pair<int64_t, double>> left;
  for (const RulePoint& point : points) {
    if (point.step) {
      std::erase_if(left, [&](const auto& old) { return old.first >= *point.step; });
    }
    // No step yet sorts before every step.
    const int64_t before = left.empty() ? std::numeric_limits<int64_t>::min() : left.back().first;
    left.emplace_back(point.step.value_or(before), point.value);
  }
  std::vector<double> values;
  for (const auto& [step, value] : left) values.push_back(value);
  return values;
}

double Median(const RuleSpec& spec, const std::vector<double>& values, size_t end) {
  const double sign = spec.goal == "max" ? -1 : 1;
  std::vector<double> costs;
  for (size_t i = end - spec.window; i < end; ++i) {
    costs.push_back(std::isfinite(values[i]) ? sign * values[i] : kInf);
  }
  std::sort(costs.begin(), costs.end());
  return costs[(costs.size() - 1) / 2];
}

bool Holds(const RuleSpec& spec, const std::vector<double>& values) {
  const double sign = spec.goal == "max" ? -1 : 1;
  if (values.size() < spec.window) return false;
  if (spec.rule == "divergence") {
    double best = kInf;
    for (size_t end = spec.window; end < values.size(); ++end) {
      best = std::min(best, Median(spec, values, end));
    }
    if (best == kInf) return false;
    const double now = Median(spec, values, values.size());
    return now > best + *spec.value * std::abs(best) && now > best + spec.min_delta;
  }
  const std::vector<double> last(values.end() - spec.window, values.end());
  const auto all = [&](auto is) { return std::all_of(last.begin(), last.end(), is); };
  if (spec.rule == "nan") return all([](double v) { return v != v; });
  if (spec.rule == "inf") return all([](double v) { return v == kInf || v == -kInf; });
  if (spec.rule == "above") return all([&](double v) { return v > *spec.value; });
  if (spec.rule == "below") return all([&](double v) { return v < *spec.value; });
  // plateau: the last record must be before the window.
  double best = kInf;
  size_t record = values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || !(sign * values[i] < best - spec.min_delta)) continue;
    best = sign * values[i];
    record = i;
  }
  return best != kInf && record + spec.window < values.size();
}

// Indices of the points at which the rule must fire.
std::vector<size_t> Expected(const RuleSpec& spec, const Points& points) {
  std::vector<size_t> fired;
  std::map<std::string, std::map<Rank, Points>> seen;
  std::map<std::string, std::map<Rank, std::vector<bool>>> truth;
  const auto on = [](const std::vector<bool>& history) {
    // On from a true point until kRecoverPoints false ones follow the last true one.
    for (size_t back = 1; back <= history.size(); ++back) {
      if (history[history.size() - back]) return back <= kRecoverPoints;
    }
    return false;
  };
  for (size_t i = 0; i < points.size(); ++i) {
    const RulePoint& point = points[i];
    if (!MetricMatches(spec.metric, point.name)) continue;
    bool before = false;
    for (const auto& [rank, history] : truth[point.name]) before = before || on(history);
    auto& stream = seen[point.name][point.rank];
    stream.push_back(point);
    const bool holds = Holds(spec, Surviving(stream));
    truth[point.name][point.rank].push_back(holds);
    if (holds && !before) fired.push_back(i);
  }
  return fired;
}

// Every timestamp at which a metric had been without a new step for `after`.
std::vector<int64_t> ExpectedStalls(const RuleSpec& spec, const Points& points, int64_t end) {
  std::vector<int64_t> at;
  std::map<std::string, Points> progress;
  for (const RulePoint& point : points) {
    if (!MetricMatches(spec.metric, point.name)) continue;
    auto& list = progress[point.name];
    std::optional<int64_t> last;
    for (const RulePoint& old : list) last = old.step ? old.step : last;
    if (list.empty() || !point.step || point.step != last) list.push_back(point);
  }
  for (const auto& [name, list] : progress) {
    for (size_t i = 0; i < list.size(); ++i) {
      const int64_t next = i + 1 < list.size() ? list[i + 1].wall.ms : end;
      if (next - list[i].wall.ms >= spec.after.count()) {
        at.push_back(list[i].wall.ms + spec.after.count());
      }
    }
  }
  std::sort(at.begin(), at.end());
  return at;
}

class History {
 public:
  explicit History(uint32_t seed) : random_(seed) {}

  // Says how often the rule fired.
  size_t Run() {
    Check();
    return fired_;
  }

 private:
  void Check() {
    const RuleSpec spec = WithRuleDefaults(RandomSpec());
    ASSERT_TRUE(CheckRule(spec).ok()) << CheckRule(spec).error().what;
    const Points points = RandomPoints();
    auto rules = RuleSet::Make({spec});
    ASSERT_TRUE(rules.has_value());
    if (spec.rule == "no_progress") return CheckStalls(spec, points, *rules);
    std::vector<size_t> fired;
    for (size_t i = 0; i < points.size(); ++i) {
      std::vector<Firing> out;
      rules->Feed(points[i], out);
      rules->Tick(points[i].at, out);
      ASSERT_LE(out.size(), 1u);
      if (!out.empty()) fired.push_back(i);
    }
    EXPECT_EQ(fired, Expected(spec, points)) << spec.rule << " window " << spec.window;
    EXPECT_EQ(Replay({spec}, points)->size(), fired.size());
    fired_ = fired.size();
  }

  uint32_t Below(uint32_t limit) { return random_() % limit; }

  RuleSpec RandomSpec() {
    RuleSpec spec;
    const auto rows = RuleCatalogue();
    const RuleRow& row = rows[Below(static_cast<uint32_t>(rows.size()))];
    spec.rule = row.kind;
    spec.metric = Below(2) == 0 ? "a" : "*";
    if (row.Takes("window")) spec.window = 1 + Below(6);
    if (row.Takes("goal") && Below(2) == 0) spec.goal = "max";
    if (row.Takes("min_delta") && Below(2) == 0) spec.min_delta = Below(3);
    if (row.Takes("value")) spec.value = spec.rule == "divergence" ? 0.5 * (1 + Below(3)) : 4;
    if (row.Takes("after")) spec.after = Seconds(1 + Below(20));
    return spec;
  }

  double RandomValue() {
    switch (Below(12)) {
      case 0:
        return std::numeric_limits<double>::quiet_NaN();
      case 1:
        return Below(2) == 0 ? kInf : -kInf;
      default:
        return static_cast<double>(Below(16)) - 4;
    }
  }

  Points RandomPoints() {
    Points points;
    std::map<std::pair<std::string, uint32_t>, int64_t> steps;
    const uint32_t ranks = 1 + Below(3);
    const bool steady = Below(2) == 0;  // long runs of the same value
    double value = 1;
    int64_t now = 0;
    const size_t count = 20 + Below(180);
    while (points.size() < count) {
      now += Below(10) == 0 ? 1'000 * Below(40) : Below(3'000);
      RulePoint point;
      point.name = Below(3) == 0 ? "b" : "a";
      point.rank = Rank{Below(ranks)};
      int64_t& step = steps[{point.name, point.rank.value}];
      step = Below(25) == 0 ? std::max<int64_t>(0, step - Below(15)) : step + Below(3);
      if (Below(20) != 0) point.step = step;
      if (!steady || Below(5) == 0) value = RandomValue();
      point.value = value;
      point.at = Millis(now);
      point.wall = WallTime{now};
      points.push_back(point);
    }
    return points;
  }

  void CheckStalls(const RuleSpec& spec, const Points& points, RuleSet& rules) {
    std::vector<Firing> out;
    const int64_t end = points.back().wall.ms + 30'000;
    for (const RulePoint& point : points) {
      // Ticks at any moment, or none at all, only change when it is reported.
      if (Below(2) == 0) rules.Tick(point.at, out);
      rules.Feed(point, out);
    }
    rules.Tick(Millis(end), out);
    std::vector<int64_t> at;
    for (const Firing& firing : out) at.push_back(firing.at.ms);
    std::sort(at.begin(), at.end());
    EXPECT_EQ(at, ExpectedStalls(spec, points, end));
    EXPECT_EQ(Replay({spec}, points, WallTime{end})->size(), out.size());
    fired_ = out.size();
  }

  std::mt19937 random_;
  size_t fired_ = 0;
};

TEST(RuleHistories, NothingFiresWithoutCauseAndNothingIsMissed) {
  if (const char* only = std::getenv("ATHANOR_SEED"); only != nullptr) {
    History(static_cast<uint32_t>(std::atoll(only))).Run();
    return;
  }
  const uint32_t base = std::random_device{}();
  size_t fired = 0;
  for (uint32_t i = 0; i < 2'000; ++i) {
    const uint32_t seed = base + i;
    SCOPED_TRACE("ATHANOR_SEED=" + std::to_string(seed));
    fired += History(seed).Run();
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(fired, 1'000u) << "these histories show nothing";
}

}  // namespace
}  // namespace athanor
