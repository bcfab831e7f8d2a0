#include "steer/attempts.h"

#include <gtest/gtest.h>

#include <set>

namespace athanor {
namespace {

JobRecord WithAttempts(size_t count) {
  JobRecord record;
  for (size_t i = 0; i < count; ++i) {
    Attempt attempt;
    attempt.number = static_cast<uint32_t>(i + 1);
    attempt.ended = {1'000};
    attempt.held_ms = 60'000;
    attempt.cause.kind = "nonzero_exit";
    record.attempts.push_back(attempt);
  }
  return record;
}

TEST(Attempts, TheUsersPauseDoublesWithEachRetry) {
  auto record = WithAttempts(3);
  record.spec.retry.backoff = Millis(1'000);
  record.retries = 1;
  EXPECT_EQ(NotBefore(record).ms, 2'000);
  record.retries = 3;
  EXPECT_EQ(NotBefore(record).ms, 5'000);
  record.retries = 60;
  EXPECT_LE(NotBefore(record).ms, 1'000 + 3'600'000);
}

TEST(Attempts, QuickDeathsAreSlowedDownAndLongLivesAreNot) {
  auto record = WithAttempts(6);
  EXPECT_EQ(NotBefore(record).ms, 1'000);
  for (auto& attempt : record.attempts) attempt.held_ms = 100;
  EXPECT_EQ(NotBefore(record).ms, 1'000 + 8'000);
}

TEST(Attempts, InterruptionsOnPurposeComeAtTheSameTimesForTheSameSeed) {
  auto record = WithAttempts(1);
  auto& spot = record.spec.resources.spot;
  spot.preempt_every = Millis(20'000);
  spot.preempt_jitter = Millis(10'000);
  spot.preempt_seed = 7;
  std::set<int64_t> times;
  for (uint32_t number = 1; number <= 50; ++number) {
    record.current()->number = number;
    auto after = PreemptAfter(record);
    ASSERT_TRUE(after);
    EXPECT_EQ(after, PreemptAfter(record));
    EXPECT_GE(after->count(), 10'000);
    EXPECT_LE(after->count(), 30'000);
    times.insert(after->count());
  }
  EXPECT_GT(times.size(), 40u);
}

TEST(Attempts, OnceMeansTheFirstAttemptOnly) {
  auto record = WithAttempts(1);
  record.spec.resources.spot.preempt_after = Millis(30'000);
  EXPECT_TRUE(PreemptAfter(record));
  EXPECT_FALSE(PreemptAfter(WithAttempts(0)));
  record.attempts.push_back(record.attempts.front());
  record.attempts.back().number = 2;
  EXPECT_FALSE(PreemptAfter(record));
}

}  // namespace
}  // namespace athanor
