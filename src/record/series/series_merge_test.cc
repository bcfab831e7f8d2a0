#include "record/series/series_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "record/fault_testing.h"

namespace athanor {
namespace {

SeriesPoint At(uint32_t attempt, std::optional<int64_t> step, double value, int64_t wall_ns = 0,
               uint32_t rank = 0) {
  return {step, wall_ns, value, attempt, rank, false, false};
}

SeriesPoint Guessed(SeriesPoint point) {
  point.guessed = true;
  return point;
}

std::vector<double> Values(const std::vector<SeriesPoint>& points) {
  std::vector<double> values;
  for (const auto& point : points) values.push_back(point.value);
  return values;
}

using V = std::vector<double>;

TEST(SeriesMerge, ALaterAttemptTakesOverFromItsFirstStepOn) {
  const std::vector<SeriesPoint> points = {At(1, 1, 11), At(1, 2, 12), At(1, 3, 13),
                                           At(1, 9, 19), At(2, 3, 23), At(2, 4, 24)};
  EXPECT_EQ(Values(MergePoints(points, false)), (V{11, 12, 23, 24}));
  const auto all = MergePoints(points, true);
  ASSERT_EQ(all.size(), 6u);
  for (const auto& point : all) {
    EXPECT_EQ(point.abandoned, point.attempt == 1 && *point.step >= 3) << *point.step;
  }
}

TEST(SeriesMerge, AnAttemptFromTheStartAbandonsAllEarlierOnes) {
  EXPECT_EQ(Values(MergePoints({At(1, 5, 1), At(2, 7, 2), At(3, 0, 3)}, false)), (V{3}));
  // The middle attempt began later than the last: the first loses by the lesser of both.
  EXPECT_EQ(Values(MergePoints({At(1, 4, 1), At(1, 5, 2), At(2, 9, 3), At(3, 5, 4)}, false)),
            (V{1, 4}));
}

TEST(SeriesMerge, WhatLiesBeyondTheStepOfAResumeIsAbandonedAlsoWhenItIsNotLoggedAgain) {
  const std::vector<SeriesPoint> points = {At(1, 3, 13), At(1, 4, 14), At(1, 5, 15), At(1, 9, 19),
                                           At(1, {}, 10)};
  EXPECT_EQ(Values(MergePoints(points, false, {{2, 4}})), (V{10, 13, 14}));
  const auto all = MergePoints(points, true, {{2, 4}});
  ASSERT_EQ(all.size(), 5u);
  for (const auto& point : all) EXPECT_EQ(point.abandoned, point.step && *point.step > 4);
  // Only attempts before the one that resumed are left behind, by the least step of any.
  EXPECT_EQ(Values(MergePoints({At(1, 2, 12), At(2, 5, 25), At(3, 9, 39)}, false, {{3, 4}})),
            (V{12, 39}));
  EXPECT_EQ(Values(MergePoints({At(1, 2, 12), At(1, 3, 13)}, false, {{2, 9}, {3, 2}})), (V{12}));
  EXPECT_EQ(Values(MergePoints({At(2, 5, 25)}, false, {{2, 4}})), (V{25}));
}

TEST(SeriesMerge, LatePointsOfAnOldAttemptBringNothingBack) {
  EXPECT_EQ(Values(MergePoints({At(2, 3, 23), At(1, 2, 12), At(1, 3, 13)}, false)), (V{12, 23}));
}

TEST(SeriesMerge, PointsWithoutAStepAreNeverSuperseded) {
  EXPECT_EQ(
      Values(MergePoints({At(1, {}, 1, 10), At(1, 1, 2), At(2, {}, 3, 5), At(2, 1, 4)}, false)),
      (V{3, 1, 4}));
}

TEST(SeriesMerge, TheNewestOfSeveralPointsOfOneStepCountsAndThenTheLastToArrive) {
  EXPECT_EQ(Values(MergePoints({At(1, 1, 1, 9), At(1, 1, 2, 5), At(1, 0, 3)}, false)), (V{3, 1}));
  EXPECT_EQ(Values(MergePoints({At(1, 1, 1, 5), At(1, 1, 2, 9), At(1, 0, 3)}, false)), (V{3, 2}));
  EXPECT_EQ(Values(MergePoints({At(1, 1, 1, 9), At(1, 1, 2, 9), At(1, 0, 3)}, false)), (V{3, 2}));
  // The history has them all.
  EXPECT_EQ(Values(KeepAllPoints({At(1, 1, 1, 9), At(1, 1, 2, 5), At(1, 0, 3)}, {})), (V{3, 2, 1}));
}

// MLflow's clients send step 0 for none. Planted bug: without DropZeroSteps one of them is left.
TEST(SeriesMerge, SeveralPointsOfANameWithoutAnyStepButZeroHaveNone) {
  const auto merged = MergePoints({At(1, 0, 1, 7), At(1, 0, 2, 8), At(2, 0, 3, 9)}, false);
  EXPECT_EQ(Values(merged), (V{1, 2, 3}));
  for (const auto& point : merged) EXPECT_FALSE(point.step);
  EXPECT_EQ(Values(MergePoints({At(1, 0, 1, 9), At(1, {}, 2, 5)}, false)), (V{2, 1}));
  // One alone is at step 0, and so are all as soon as there is another step.
  EXPECT_EQ(MergePoints({At(1, 0, 1)}, false).at(0).step, 0);
  EXPECT_EQ(Values(MergePoints({At(1, 0, 1, 7), At(1, 0, 2, 8), At(1, 1, 3)}, false)), (V{2, 3}));
}

// Planted bug: forget the guessed points in KeepSpeakers.
TEST(SeriesMerge, GuessesCountOnlyWhereNothingElseWasSent) {
  EXPECT_EQ(Values(MergePoints({Guessed(At(1, 1, 1)), Guessed(At(1, 2, 2))}, false)), (V{1, 2}));
  EXPECT_EQ(Values(MergePoints({Guessed(At(1, 1, 1)), Guessed(At(1, 2, 2)), At(1, 1, 3)}, true)),
            (V{3}));
  // Also of other attempts, and what another rank logs is more than what rank 0 prints.
  EXPECT_EQ(Values(MergePoints({At(1, {}, 1), Guessed(At(2, 5, 2))}, false)), (V{1}));
  EXPECT_EQ(Values(MergePoints({Guessed(At(1, 1, 1)), At(1, 1, 3, 0, 2)}, false)), (V{3}));
  EXPECT_EQ(Values(KeepAllPoints({Guessed(At(1, 1, 1)), At(1, 1, 3)}, {})), (V{3}));
}

TEST(SeriesMerge, OtherRanksSpeakOnlyWhereRankZeroIsSilent) {
  EXPECT_EQ(Values(MergePoints({At(1, 1, 1, 0, 3), At(1, 2, 2, 0, 0)}, false)), (V{2}));
  EXPECT_EQ(Values(MergePoints({At(1, 1, 1, 0, 3), At(1, 1, 2, 0, 2)}, false)), (V{2, 1}));
}

TEST(SeriesMerge, MinAndMaxAreOfFiniteValuesOnly) {
  const double inf = std::numeric_limits<double>::infinity();
  RunningSummary summary;
  summary.Add(At(1, 1, NAN));
  summary.Add(At(1, 2, -inf));
  EXPECT_TRUE(std::isnan(summary.value().min));
  EXPECT_TRUE(std::isnan(summary.value().max));
  summary.Add(At(1, 3, -4));
  summary.Add(At(1, 4, inf));
  EXPECT_EQ(summary.value().min, -4);
  EXPECT_EQ(summary.value().max, -4);
  EXPECT_EQ(summary.value().last, inf);
  EXPECT_EQ(summary.value().count, 4u);
}

// What the header says, word by word and as slowly as it can be done.
std::vector<SeriesPoint> ByTheWords(std::vector<SeriesPoint> points, const Resumes& resumes) {
  const auto keep = [&points](auto which) {
    if (std::any_of(points.begin(), points.end(), which)) {
      std::erase_if(points, [&](const auto& p) { return !which(p); });
    }
  };
  keep([](const auto& p) { return !p.guessed; });
  keep([](const auto& p) { return p.rank == 0; });
  const bool stepped = std::any_of(points.begin(), points.end(),
                                   [](const auto& p) { return p.step && *p.step != 0; });
  if (!stepped && points.size() > 1) {
    for (auto& point : points) point.step.reset();
  }
  std::vector<SeriesPoint> counted;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto& point = points[i];
    bool counts = true;
    for (size_t k = 0; point.step && k < points.size(); ++k) {
      const auto& other = points[k];
      if (!other.step || k == i) continue;
      if (other.attempt > point.attempt && *other.step <= *point.step) counts = false;
      if (other.attempt == point.attempt && other.rank == point.rank && other.step == point.step &&
          (other.wall_ns > point.wall_ns || (other.wall_ns == point.wall_ns && k > i))) {
        counts = false;
      }
    }
    for (const auto& [attempt, step] : resumes) {
      if (point.step && attempt > point.attempt && *point.step > step) counts = false;
    }
    if (counts) counted.push_back(point);
  }
  std::stable_sort(counted.begin(), counted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.step, a.wall_ns, a.attempt, a.rank) <
           std::tie(b.step, b.wall_ns, b.attempt, b.rank);
  });
  return counted;
}

void ExpectSame(const SeriesSummary& found, const std::vector<SeriesPoint>& merged) {
  ASSERT_EQ(found.count, merged.size());
  if (merged.empty()) return;
  EXPECT_EQ(found.last, merged.back().value);
  EXPECT_EQ(found.last_step, merged.back().step);
  EXPECT_EQ(found.last_wall_ns, merged.back().wall_ns);
  double min = merged.front().value;
  double max = min;
  for (const auto& point : merged) {
    min = std::min(min, point.value);
    max = std::max(max, point.value);
  }
  EXPECT_EQ(found.min, min);
  EXPECT_EQ(found.max, max);
}

// Turns red if, for one, Add forgets that a newer attempt may abandon points, or Heed
// that a resume does; that a guess may be there before, or that points at step 0 are there again.
TEST(SeriesMerge, ARunningSummaryIsStaleOrEqualsTheOneMadeFromAllPoints) {
  Dice dice(TestSeed());
  size_t kept_up = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<SeriesPoint> points;
    RunningSummary running;
    Resumes resumes;
    const uint64_t ranks = 1 + dice.Below(3);
    const uint32_t first_rank = static_cast<uint32_t>(dice.Below(2));
    uint32_t attempt = 1;
    int64_t step = 0;
    const int guesses = dice.Once(3) ? static_cast<int>(dice.Below(20)) : 0;  // at first
    const int zeros = dice.Once(3) ? static_cast<int>(dice.Below(40)) : 0;    // at first
    for (int i = 0; i < 25; ++i) {
      if (dice.Once(8)) {
        ++attempt;
        step -= static_cast<int64_t>(dice.Below(4));
        if (dice.Once(2)) {
          const Resumes before = resumes;
          if (dice.Once(10)) resumes.clear();
          resumes[attempt] = step;
          running.Heed(before, resumes);
        }
      }
      if (!dice.Once(5) && i >= zeros) ++step;
      if (i < zeros) step = 0;
      const uint32_t from = dice.Once(12) && attempt > 1 ? attempt - 1 : attempt;
      points.push_back(At(from, dice.Once(6) ? std::nullopt : std::optional(step),
                          static_cast<double>(dice.Below(1000)),
                          static_cast<int64_t>(dice.Below(8)),
                          first_rank + static_cast<uint32_t>(dice.Below(ranks))));
      points.back().guessed = i < guesses || (guesses > 0 && dice.Once(4));
      running.Add(points.back(), resumes);
      if (running.stale()) {
        running = RunningSummary::Of(points, resumes);
      } else {
        ++kept_up;
      }
      ASSERT_FALSE(running.stale());
      ExpectSame(running.value(), MergePoints(points, false, resumes));
      EXPECT_EQ(Values(MergePoints(points, false, resumes)), Values(ByTheWords(points, resumes)));
      if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
  }
  EXPECT_GT(kept_up, 10'000u) << "the quick way is hardly ever taken";
}

}  // namespace
}  // namespace athanor
