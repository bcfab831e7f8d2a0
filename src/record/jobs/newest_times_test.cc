#include "record/jobs/newest_times.h"

#include <gtest/gtest.h>

#include <string>

namespace athanor {
namespace {

using Of = NewestTimes::Of;

TEST(NewestTimes, KnowsOfEachTextTheTimeOfTheLast) {
  NewestTimes times;
  times.Add(Of::kName, "a", 5);
  times.Add(Of::kName, "a", 9);
  times.Add(Of::kName, "a", 7);
  times.Add(Of::kName, "", 3);
  EXPECT_EQ(times.Find(Of::kName, "a"), 7);
  EXPECT_EQ(times.Find(Of::kName, ""), 3);
  EXPECT_EQ(times.Find(Of::kName, "b"), std::nullopt);
}

TEST(NewestTimes, KeepsTheKindsApart) {
  NewestTimes times;
  times.Add(Of::kKey, "a", 1);
  times.Add(Of::kRun, "a", 2);
  EXPECT_EQ(times.Find(Of::kKey, "a"), 1);
  EXPECT_EQ(times.Find(Of::kRun, "a"), 2);
  EXPECT_EQ(times.Find(Of::kName, "a"), std::nullopt);
}

// Planted bug: grow without taking the old slots along.
TEST(NewestTimes, LosesNothingAsItGrowsAndSeldomTakesOneForAnother) {
  NewestTimes times;
  constexpr int kTexts = 50'000;
  const int64_t now = 1'800'000'000'000;
  for (int i = 0; i < kTexts; ++i) times.Add(Of::kName, "seen " + std::to_string(i), now + i);
  int wrong = 0;
  for (int i = 0; i < kTexts; ++i) {
    ASSERT_EQ(times.Find(Of::kName, "seen " + std::to_string(i)), now + i);
    wrong += times.Find(Of::kName, "other " + std::to_string(i)).has_value();
  }
  EXPECT_LE(wrong, 1);
}

TEST(NewestTimes, KnowsNothingAtFirst) {
  EXPECT_EQ(NewestTimes().Find(Of::kKey, "a"), std::nullopt);
}

// A clock can be set to anything.
TEST(NewestTimes, TakesATimeBeyondItsRangeForTheNearestOne) {
  NewestTimes times;
  times.Add(Of::kName, "old", -5);
  times.Add(Of::kName, "far", INT64_MAX);
  EXPECT_EQ(times.Find(Of::kName, "old"), 0);
  EXPECT_TRUE(times.Find(Of::kName, "far"));
}

}  // namespace
}  // namespace athanor
