#include "run/ship/point_quota.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(PointQuota, LetsABurstThroughAndThenSoManyASecond) {
  PointQuota quota;
  EXPECT_EQ(quota.Left(Millis(500)), size_t{PointQuota::kBurst});
  quota.Take(PointQuota::kBurst);
  EXPECT_EQ(quota.Left(Millis(500)), 0u);
  EXPECT_EQ(quota.Left(Millis(1'500)), size_t{PointQuota::kEachSecond});
  EXPECT_EQ(quota.Left(Millis(1'500)), size_t{PointQuota::kEachSecond}) << "time counts once";
}

TEST(PointQuota, NeverHasMoreThanTheBurst) {
  PointQuota quota;
  (void)quota.Left(Millis(0));
  EXPECT_EQ(quota.Left(Millis(1'000'000'000)), size_t{PointQuota::kBurst});
}

TEST(PointQuota, WhatWasTakenTooMuchIsPaidBack) {
  PointQuota quota;
  (void)quota.Left(Millis(0));
  quota.Take(PointQuota::kBurst + PointQuota::kEachSecond);
  EXPECT_EQ(quota.Left(Millis(1'000)), 0u);
  EXPECT_EQ(quota.Left(Millis(2'000)), size_t{PointQuota::kEachSecond});
}

}  // namespace
}  // namespace athanor
