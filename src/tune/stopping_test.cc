#include "tune/stopping.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/random.h"

namespace athanor::tune {
namespace {

AshaOptions Promoting() {
  AshaOptions options;
  options.form = AshaOptions::Form::kPromotion;
  return options;
}

TEST(Asha, HasRungsAFactorApartBelowTheEnd) {
  EXPECT_EQ(Asha({}).rungs(), (std::vector<int64_t>{1, 3, 9, 27}));
  AshaOptions options;
  options.first = 10;
  options.last = 10;
  EXPECT_TRUE(Asha(options).rungs().empty());
  EXPECT_EQ(Asha(options).Report(1, 10, 0.5), Verdict::kGoOn);
}

TEST(Asha, DecidesNothingBeforeEtaTrialsAndStopsAllButTheBestThird) {
  Asha asha({});
  EXPECT_EQ(asha.Report(1, 1, 5.0), Verdict::kGoOn);
  EXPECT_EQ(asha.Report(2, 1, 9.0), Verdict::kGoOn);  // only two yet
  EXPECT_EQ(asha.Report(3, 1, 7.0), Verdict::kStop);
  EXPECT_EQ(asha.Report(4, 1, 1.0), Verdict::kGoOn);
  EXPECT_EQ(asha.Report(3, 2, 0.0), Verdict::kStop);  // stopped stays stopped
  EXPECT_EQ(asha.Report(5, 1, std::nan("")), Verdict::kStop);
}

// Random trials report at random steps in random order.
TEST(Asha, StoppingKeepsItsPromisesOverRandomHistories) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 0, 0);
    AshaOptions options;
    options.first = 1 + random.Below(4);
    options.last = 20 + random.Below(100);
    options.eta = 2 + random.Below(3);
    Asha asha(options), replay(options);
    std::vector<int64_t> step(40, 0);
    std::vector<char> stopped(40, 0);
    for (int i = 0; i < 600; ++i) {
      const auto trial = random.Below(40);
      step[trial] += 1 + random.Below(6);
      const double value = random.Below(50) == 0 ? std::nan("") : std::floor(10 * random.Uniform());
      const auto verdict = asha.Report(trial, step[trial], value);
      EXPECT_EQ(replay.Report(trial, step[trial], value), verdict);
      EXPECT_NE(verdict, Verdict::kPause);
      if (stopped[trial]) {
        EXPECT_EQ(verdict, Verdict::kStop);
      }
      stopped[trial] |= verdict == Verdict::kStop;
    }
    for (size_t r = 0; r + 1 < asha.rungs().size(); ++r) {
      EXPECT_LE(asha.reached(r + 1), asha.reached(r)) << "ATHANOR_SEED=" << seed;
    }
  }
}

TEST(Asha, PromotionLetsAtMostOneInEtaLeaveARungAndTheBestFirst) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, 1, 0);
    auto options = Promoting();
    options.eta = 2 + random.Below(3);
    Asha asha(options);
    std::map<int64_t, int64_t> until;  // where a trial runs to
    std::map<int64_t, double> quality;
    std::map<int64_t, int> left;  // rungs left
    int64_t next = 0;
    for (int i = 0; i < 400; ++i) {
      if (const auto promotion = asha.Promote()) {
        // None that waits next to it is better.
        const int rung = left[promotion->trial]++;
        for (const auto& [trial, value] : quality) {
          if (trial != promotion->trial && left[trial] == rung) {
            EXPECT_GE(value, quality[promotion->trial]) << "ATHANOR_SEED=" << seed;
          }
        }
        until[promotion->trial] = promotion->until;
      } else {
        quality[next] = random.Uniform();
        until[next] = asha.rungs()[0];
        ++next;
      }
      // Everyone who runs arrives.
      for (auto& [trial, step] : until) {
        if (step == 0) continue;
        const auto verdict = asha.Report(trial, step, quality[trial]);
        EXPECT_EQ(verdict, step == options.last ? Verdict::kGoOn : Verdict::kPause);
        step = 0;
      }
    }
    for (size_t r = 0; r < asha.rungs().size(); ++r) {
      size_t gone = 0;
      for (const auto& [trial, count] : left) gone += static_cast<size_t>(count) > r;
      EXPECT_LE(static_cast<double>(gone) * options.eta, static_cast<double>(asha.reached(r)))
          << "ATHANOR_SEED=" << seed;
    }
  }
}

TEST(Hyperband, DealsTrialsToBracketsByTheirShares) {
  Hyperband hyperband({});
  ASSERT_EQ(hyperband.brackets(), 4u);
  std::vector<int> dealt(4, 0);
  for (int64_t trial = 0; trial < 400; ++trial) ++dealt[hyperband.BracketOf(trial)];
  for (size_t b = 1; b < 4; ++b) {
    EXPECT_GT(dealt[b - 1], dealt[b]);  // the bracket that halves most has most trials
    EXPECT_GT(dealt[b], 0);
  }
  EXPECT_EQ(hyperband.Bracket(3).rungs(), (std::vector<int64_t>{27}));
}

TEST(MedianRule, StopsWhatIsWorseThanTheMedianOfFinishedTrials) {
  MedianRule rule(3);
  for (int64_t trial = 0; trial < 5; ++trial) {
    for (int64_t step = 1; step <= 10; ++step) {
      EXPECT_EQ(rule.Report(trial, step, 1.0 + static_cast<double>(trial)), Verdict::kGoOn);
    }
    rule.Finished(trial);
  }
  EXPECT_EQ(rule.Report(7, 2, 9.0), Verdict::kGoOn);  // grace
  EXPECT_EQ(rule.Report(7, 3, 9.0), Verdict::kStop);
  EXPECT_EQ(rule.Report(8, 4, 2.5), Verdict::kGoOn);
  EXPECT_EQ(rule.Report(9, 5, std::nan("")), Verdict::kStop);
}

TEST(Curve, ForeseesWhereALearningCurveEnds) {
  Random random(4, 0, 0);
  std::vector<CurvePoint> points;
  for (int64_t step = 1; step <= 12; ++step) {
    points.push_back(
        {step, 0.5 + 2.0 / std::sqrt(static_cast<double>(step)) + 0.01 * random.Normal()});
  }
  // It ends near 0.7.
  EXPECT_GT(*ChanceToBeat(points, 100, 1.0, 1), 0.95);
  EXPECT_LT(*ChanceToBeat(points, 100, 0.3, 1), 0.05);
  EXPECT_EQ(ChanceToBeat(points, 100, 0.7, 1), ChanceToBeat(points, 100, 0.7, 1));
  EXPECT_FALSE(ChanceToBeat({{1, 1.0}, {2, 1.0}, {3, 1.0}}, 100, 0.3, 1));
  EXPECT_FALSE(ChanceToBeat({{5, 1}, {5, 2}, {5, 3}, {5, 4}}, 100, 0.3, 1));
}

}  // namespace
}  // namespace athanor::tune
