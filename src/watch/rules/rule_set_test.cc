#include "watch/rules/rule_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "job/rules.h"

namespace athanor {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

RuleSpec Rule(std::string kind, std::string metric = "loss") {
  RuleSpec spec;
  spec.rule = std::move(kind);
  spec.metric = std::move(metric);
  return spec;
}

RuleSpec Limit(std::string kind, double value, uint32_t window = 0) {
  RuleSpec spec = Rule(std::move(kind));
  spec.value = value;
  spec.window = window;
  return spec;
}

RuleSpec Plateau(uint32_t window, double min_delta = 0, std::string goal = "min") {
  RuleSpec spec = Rule("plateau");
  spec.window = window;
  spec.min_delta = min_delta;
  spec.goal = std::move(goal);
  return spec;
}

// A rule set under test, a second passing between two points.
class Watched {
 public:
  explicit Watched(std::vector<RuleSpec> specs) : rules_(RuleSet::Make(specs).value()) {}

  Watched& At(std::optional<int64_t> step, double value, std::string name = "loss",
              uint32_t rank = 0) {
    now_ += Seconds(1);
    rules_.Feed({std::move(name), Rank{rank}, step, value, now_, WallTime{now_.count()}}, firings);
    return *this;
  }
  // Values at the next steps.
  Watched& Values(const std::vector<double>& values) {
    for (const double value : values) At(next_++, value);
    return *this;
  }
  Watched& Wait(Millis time) {
    now_ += time;
    rules_.Tick(now_, firings);
    return *this;
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> steps;
    for (const Firing& firing : firings) steps.push_back(firing.step.value_or(-1));
    return steps;
  }
  RuleSet& rules() { return rules_; }

  std::vector<Firing> firings;

 private:
  RuleSet rules_;
  Millis now_{0};
  int64_t next_ = 0;
};

using Steps = std::vector<int64_t>;

TEST(Rules, AFiringSaysWhatWhereAndWhatToDo) {
  RuleSpec spec = Limit("above", 10);
  spec.name = "too high";
  spec.action = "stop";
  Watched run({spec});
  run.Values({9, 10, 12.5});
  ASSERT_EQ(run.firings.size(), 1u);
  const Firing& firing = run.firings[0];
  EXPECT_EQ(firing.rule, "too high");
  EXPECT_EQ(firing.kind, "above");
  EXPECT_EQ(firing.metric, "loss");
  EXPECT_EQ(firing.step, 2);
  EXPECT_EQ(firing.value, "12.5");
  EXPECT_EQ(firing.threshold, "at most 10");
  EXPECT_EQ(firing.action, "stop");
  EXPECT_EQ(firing.advice, FindRule("above")->advice);
  EXPECT_EQ(firing.at, WallTime{3'000});
}

TEST(Rules, NanAndInfTellTheSpecialValuesApart) {
  Watched run({Rule("nan"), Rule("inf")});
  run.Values({1, kInf, kNan});
  ASSERT_EQ(run.firings.size(), 2u);
  EXPECT_EQ(run.firings[0].kind, "inf");
  EXPECT_EQ(run.firings[0].value, "Infinity");
  EXPECT_EQ(run.firings[1].kind, "nan");
  EXPECT_EQ(run.firings[1].value, "NaN");
  Watched negative({Rule("inf")});
  negative.Values({-kInf});
  EXPECT_EQ(negative.firings.at(0).value, "-Infinity");
}

TEST(Rules, NanIsNeitherAboveNorBelow) {
  Watched run({Limit("above", 0), Limit("below", 0)});
  run.Values({kNan, kNan});
  EXPECT_TRUE(run.firings.empty());
  run.Values({kInf, -kInf});
  EXPECT_EQ(run.firings.size(), 2u);
}

TEST(Rules, AWindowAsksForSoManyInARow) {
  Watched run({Limit("above", 1, 3)});
  run.Values({2, 2, 0, 2, 2, 2});
  EXPECT_EQ(run.steps(), Steps{5});
}

TEST(Rules, FireOnceAndAgainOnlyAfterRecovery) {
  Watched run({Limit("above", 1)});
  run.Values({2, 2, 0, 2, 0, 0, 0, 0, 2});
  EXPECT_EQ(run.steps(), Steps{0}) << "four good points are not yet a recovery";
  run.Values({0, 0, 0, 0, 0, 2});
  EXPECT_EQ(run.steps(), (Steps{0, 14}));
}

TEST(Rules, PlateauFiresWhenNoNewBestComes) {
  Watched run({Plateau(3)});
  run.Values({5, 4, 4.5, 4, 3.9, 4, 4});
  EXPECT_TRUE(run.firings.empty());
  run.Values({3.9});
  EXPECT_EQ(run.steps(), Steps{7});
  EXPECT_EQ(run.firings[0].threshold, "better than 3.9 within 3 points");
}

TEST(Rules, PlateauWantsMoreThanMinDelta) {
  Watched run({Plateau(3, 0.5)});
  run.Values({5, 4.6, 4.55, 4.5});
  EXPECT_EQ(run.steps(), Steps{3}) << "better by exactly min_delta is not better";
}

TEST(Rules, PlateauKnowsThatMoreCanBeBetter) {
  Watched run({Plateau(2, 0, "max")});
  run.Values({0.1, 0.2, 0.3, 0.4, 0.4, 0.3});
  EXPECT_EQ(run.steps(), Steps{5});
}

TEST(Rules, PlateauDoesNotTakeInfinityForABest) {
  Watched run({Plateau(3)});
  run.Values({kNan, kNan, kNan, kNan, -kInf, 5, 4, -kInf, 3});
  EXPECT_TRUE(run.firings.empty());
  run.Values({kNan, kNan, kNan});
  EXPECT_EQ(run.steps(), Steps{11});
}

TEST(Rules, DivergenceLooksAtTheMedian) {
  RuleSpec spec = Rule("divergence");
  spec.window = 3;
  Watched run({spec});
  run.Values({1, 1, 1, 100, 1, 1, 100, 1});
  EXPECT_TRUE(run.firings.empty()) << "a spike is no divergence";
  run.Values({2.5, 2.5});
  ASSERT_EQ(run.steps(), Steps{8}) << "100, 1, 2.5";
  EXPECT_EQ(run.firings[0].value, "2.5");
  EXPECT_EQ(run.firings[0].threshold, "at most 2 (best 1), median of 3 points");
}

TEST(Rules, DivergenceWorksForNegativeAndForGrowingMetrics) {
  RuleSpec spec = Rule("divergence");
  spec.window = 1;
  Watched negative({spec});
  negative.Values({-10, -5, -0.5, 0.5});
  EXPECT_EQ(negative.steps(), Steps{3});
  spec.goal = "max";
  Watched accuracy({spec});
  accuracy.Values({0.2, 0.8, 0.5, 0.4, 0.39});
  EXPECT_EQ(accuracy.steps(), Steps{4});
  EXPECT_EQ(accuracy.firings[0].threshold, "at least 0.4 (best 0.8), median of 1 points");
}

TEST(Rules, DivergenceIntoNanIsSeen) {
  RuleSpec spec = Rule("divergence");
  spec.window = 4;
  Watched run({spec});
  run.Values({1, 1, 1, 1, kNan, kNan});
  EXPECT_TRUE(run.firings.empty());
  run.Values({kNan});
  EXPECT_EQ(run.steps(), Steps{6});
}

TEST(Rules, DivergenceWantsMinDeltaToo) {
  RuleSpec spec = Rule("divergence");
  spec.window = 1;
  spec.min_delta = 1;
  Watched run({spec});
  run.Values({1e-6, 1e-3, 0.9, 1.1});
  EXPECT_EQ(run.steps(), Steps{3});
}

TEST(Rules, NoProgressCountsFromTheLastNewStep) {
  RuleSpec spec = Rule("no_progress");
  spec.after = Seconds(60);
  Watched run({spec});
  run.Wait(Seconds(1'000));
  EXPECT_TRUE(run.firings.empty()) << "a metric that never came cannot stand still";
  run.At(7, 1).Wait(Seconds(59));
  EXPECT_TRUE(run.firings.empty());
  run.Wait(Seconds(5));
  ASSERT_EQ(run.steps(), Steps{7});
  EXPECT_EQ(run.firings[0].value, "no new step");
  EXPECT_EQ(run.firings[0].threshold, "within 1 m");
  EXPECT_EQ(run.firings[0].at, WallTime{1'001'000 + 60'000}) << "when it became true";
  run.Wait(Seconds(500)).At(7, 1).Wait(Seconds(500));
  EXPECT_EQ(run.firings.size(), 1u) << "the same step again is no progress";
  run.At(8, 1).Wait(Seconds(60));
  EXPECT_EQ(run.steps(), (Steps{7, 8}));
}

TEST(Rules, NoProgressTakesPointsOfAnyRankAndWithoutSteps) {
  RuleSpec spec = Rule("no_progress");
  spec.after = Seconds(60);
  Watched run({spec});
  for (int i = 0; i < 10; ++i) run.At(i, 1, "loss", i % 2).Wait(Seconds(50));
  for (int i = 0; i < 10; ++i) run.At(std::nullopt, 1).Wait(Seconds(50));
  EXPECT_TRUE(run.firings.empty());
}

TEST(Rules, NoProgressIsSeenEvenWhenNobodyTicked) {
  RuleSpec spec = Rule("no_progress");
  spec.after = Seconds(60);
  Watched ticked({spec});
  ticked.At(1, 1).Wait(Seconds(99)).At(2, 1);
  std::vector<RulePoint> points;
  points.push_back({"loss", Rank{0}, 1, 1, Millis(0), WallTime{1'000}});
  points.push_back({"loss", Rank{0}, 2, 1, Millis(0), WallTime{101'000}});
  EXPECT_EQ(ticked.firings.size(), 1u);
  EXPECT_EQ(Replay({spec}, points).value(), ticked.firings);
  EXPECT_EQ(Replay({spec}, points, WallTime{161'000})->size(), 2u);
}

TEST(Rules, APatternIsJudgedMetricByMetric) {
  Watched run({Rule("nan", "*loss")});
  run.At(0, kNan, "train/loss").At(0, kNan, "val/loss").At(0, kNan, "accuracy");
  ASSERT_EQ(run.firings.size(), 2u);
  EXPECT_EQ(run.firings[0].metric, "train/loss");
  EXPECT_EQ(run.firings[1].metric, "val/loss");
}

TEST(Rules, AnUnmatchedRuleIsNamedAndNeverFires) {
  RuleSpec progress = Rule("no_progress", "gone*");
  Watched run({Rule("nan", "los"), progress, Rule("nan")});
  run.At(0, kNan).Wait(std::chrono::hours(100));
  EXPECT_EQ(run.firings.size(), 1u);
  EXPECT_EQ(run.rules().unmatched(),
            (std::vector<UnmatchedRule>{{"nan", "los"}, {"no_progress", "gone*"}}));
}

TEST(Rules, RanksAreJudgedApartAndToldOnce) {
  Watched run({Plateau(2)});
  // Rank 1 lags behind by a step all the time: that is not a step back.
  for (int64_t step = 0; step < 20; ++step) {
    run.At(step + 1, 100.0 - static_cast<double>(step), "loss", 0);
    run.At(step, 200.0 - static_cast<double>(step), "loss", 1);
  }
  EXPECT_TRUE(run.firings.empty());
  Watched sick({Rule("nan")});
  for (int64_t step = 0; step < 10; ++step) {
    for (uint32_t rank = 0; rank < 8; ++rank) sick.At(step, rank == 5 ? kNan : 1, "loss", rank);
  }
  EXPECT_EQ(sick.steps(), Steps{0}) << "seven well ranks do not cure the eighth";
}

TEST(Rules, AStepThatGoesBackTakesBackWhatWasBehindIt) {
  Watched run({Plateau(4)});
  run.At(0, 5).At(1, 4).At(2, 1).At(3, 2).At(4, 2);
  // Resumed from step 1: the best of 1 never was, and two points without a best are gone.
  run.At(2, 3.9).At(3, 3.8).At(4, 3.7).At(5, 3.6).At(6, 3.5).At(7, 3.4);
  EXPECT_TRUE(run.firings.empty());
  run.At(8, 3.4).At(9, 3.4).At(10, 3.4);
  run.At(9, 3.4).At(10, 3.4);
  EXPECT_TRUE(run.firings.empty()) << "8, 9 and 10 count once";
  run.At(11, 3.4);
  EXPECT_EQ(run.steps(), Steps{11});
}

TEST(Rules, TheSameTroubleAfterAStepBackIsNotToldAgain) {
  Watched run({Rule("nan")});
  run.At(4, 1).At(5, kNan).At(5, kNan).At(3, 1).At(4, 1).At(5, kNan);
  EXPECT_EQ(run.steps(), Steps{5});
}

TEST(Rules, GoingBackFurtherThanRememberedStartsAfresh) {
  Watched run({Plateau(3)});
  for (int64_t step = 0; step < 5'000; ++step) run.At(step, -static_cast<double>(step));
  run.At(10, 7).At(11, 6).At(12, 5).At(13, 4);
  EXPECT_TRUE(run.firings.empty());
  run.Values({});
  run.At(14, 4).At(15, 4).At(16, 4);
  EXPECT_EQ(run.steps(), Steps{16});
}

TEST(Rules, TooManyStreamsAreCountedNotKept) {
  Watched run({Rule("nan", "*")});
  for (size_t i = 0; i < RuleSet::kMaxStreams + 10; ++i) run.At(0, kNan, std::to_string(i));
  EXPECT_EQ(run.firings.size(), RuleSet::kMaxStreams);
  EXPECT_EQ(run.rules().ignored(), 10u);
}

TEST(Rules, AWrongRuleIsRefusedWithItsHint) {
  const auto made = RuleSet::Make({Rule("nan"), Rule("platau")});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().hint, "did you mean 'plateau'?");
  EXPECT_FALSE(Replay({Rule("nan", "")}, {}).has_value());
}

}  // namespace
}  // namespace athanor
