#include "watch/progress.h"

#include <gtest/gtest.h>

#include <limits>

namespace athanor {
namespace {

using std::chrono::seconds;

TEST(Progress, IsNothingUntilSomethingIsKnown) {
  ProgressTracker tracker;
  EXPECT_FALSE(tracker.At(seconds(1)));
  tracker.Feed("hello\nloading 3/4 files\n", seconds(1));
  EXPECT_FALSE(tracker.At(seconds(2)));
}

TEST(Progress, FollowsTheMarksOfTheSdk) {
  ProgressTracker tracker;
  tracker.Mark(0, 100, "step", seconds(0));
  EXPECT_FALSE(tracker.At(seconds(0))->eta);
  tracker.Mark(25, 100, "step", seconds(10));
  const auto now = tracker.At(seconds(10));
  EXPECT_DOUBLE_EQ(now->fraction, 0.25);
  EXPECT_EQ(*now->eta, seconds(30));
  EXPECT_FALSE(now->guessed);
  EXPECT_EQ(*tracker.At(seconds(20))->eta, seconds(20)) << "time passes between marks too";
  EXPECT_EQ(*tracker.At(seconds(90))->eta, seconds(0));
}

TEST(Progress, IgnoresMarksThatAreNoNumbers) {
  ProgressTracker tracker;
  tracker.Mark(std::numeric_limits<double>::quiet_NaN(), 10, "step", seconds(0));
  tracker.Mark(-1, 10, "step", seconds(0));
  EXPECT_FALSE(tracker.At(seconds(0)));
}

TEST(Progress, StartsItsEstimateAgainWhenTheCountGoesBack) {
  ProgressTracker tracker;
  tracker.Mark(0, 10, "step", seconds(0));
  tracker.Mark(9, 10, "step", seconds(90));
  tracker.Mark(0, 10, "step", seconds(100));
  EXPECT_FALSE(tracker.At(seconds(100))->eta);
  tracker.Mark(1, 10, "step", seconds(101));
  EXPECT_EQ(*tracker.At(seconds(101))->eta, seconds(9));
}

TEST(Progress, IsGuessedFromABar) {
  ProgressTracker tracker;
  tracker.Feed(" 10%|#    | 94/940 [00:12<01", seconds(0));
  EXPECT_FALSE(tracker.At(seconds(0))) << "the line has not ended";
  tracker.Feed(":21, 27.9it/s]\r 20%|##   | 188/940 [00:24<01:00]\r", seconds(12));
  const auto now = tracker.At(seconds(12));
  ASSERT_TRUE(now);
  EXPECT_TRUE(now->guessed);
  EXPECT_DOUBLE_EQ(now->fraction, 0.2);
}

TEST(Progress, CombinesEpochsWithTheStepsWithin) {
  ProgressTracker tracker;
  tracker.Feed("Epoch 1/4\n", seconds(0));
  EXPECT_DOUBLE_EQ(tracker.At(seconds(0))->fraction, 0);
  tracker.Feed("50/100 [=====>.....] - ETA: 1s - loss: 0.4\r", seconds(5));
  EXPECT_DOUBLE_EQ(tracker.At(seconds(5))->fraction, 0.125);
  tracker.Feed("Epoch 3/4 step 20/100 loss=1\n", seconds(22));
  const auto now = tracker.At(seconds(22));
  EXPECT_DOUBLE_EQ(now->done, 2.2);
  EXPECT_EQ(now->unit, "epoch");
  EXPECT_EQ(*now->eta, seconds(18));
}

TEST(Progress, AnEpochThatTellsResultsIsOver) {
  ProgressTracker tracker;
  tracker.Feed("epoch 2/10 loss=0.3 val_acc=0.9\n", seconds(0));
  EXPECT_DOUBLE_EQ(tracker.At(seconds(0))->fraction, 0.2);
}

TEST(Progress, MarksWinOverTheLog) {
  ProgressTracker tracker;
  tracker.Feed("epoch 2/10 loss=0.3\n", seconds(0));
  tracker.Mark(1, 2, "step", seconds(1));
  tracker.Feed("epoch 9/10 loss=0.3\n", seconds(2));
  EXPECT_DOUBLE_EQ(tracker.At(seconds(2))->fraction, 0.5);
  EXPECT_FALSE(tracker.At(seconds(2))->guessed);
}

TEST(Progress, LooksAtTheEndOfAFlood) {
  ProgressTracker tracker;
  std::string flood;
  for (int i = 1; i <= 100'000; ++i) flood += "step " + std::to_string(i) + "/100000\n";
  tracker.Feed(flood, seconds(3));
  EXPECT_DOUBLE_EQ(tracker.At(seconds(3))->fraction, 1);
}

}  // namespace
}  // namespace athanor
