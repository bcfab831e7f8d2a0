#include "place/estimate.h"

#include <gtest/gtest.h>

#include <utility>

namespace athanor {
namespace {

constexpr int64_t kNow = 1'000'000;

WaitingJob Waits(uint32_t cpu_millis, int64_t created, int64_t holds_ms) {
  WaitingJob job;
  job.id = JobId::New();
  job.created = WallTime{created};
  job.need.cpu_millis = cpu_millis;
  job.hold_limit = Millis(holds_ms);
  return job;
}

QueueView Machine(std::optional<int64_t> ends_at) {
  QueueView view;
  view.inventory.cpu_millis = 2000;
  view.now = WallTime{kNow};
  RunningJob running{JobId::New(), "r", {}, std::nullopt};
  running.placement.cpu_millis = 2000;
  if (ends_at) running.ends_by = WallTime{*ends_at};
  view.running.push_back(running);
  return view;
}

TEST(LatestStarts, EachStartsWhenThoseBeforeItMustHaveEnded) {
  auto view = Machine(kNow + 100);
  view.waiting = {Waits(2000, 1, 30), Waits(2000, 2, 50), Waits(1000, 3, 0)};
  std::swap(view.waiting[0], view.waiting[1]);
  const auto starts = LatestStarts(view);
  ASSERT_EQ(starts.size(), 3u);
  EXPECT_EQ(starts[1]->ms, kNow + 100) << "the first that came";
  EXPECT_EQ(starts[0]->ms, kNow + 130);
  EXPECT_EQ(starts[2]->ms, kNow + 180);
}

TEST(LatestStarts, BehindAJobWithoutALimitNothingIsKnown) {
  auto view = Machine(std::nullopt);
  view.waiting = {Waits(2000, 1, 50)};
  EXPECT_FALSE(LatestStarts(view)[0]);
  view = Machine(kNow + 5);
  view.waiting = {Waits(2000, 1, 0), Waits(2000, 2, 10)};
  const auto starts = LatestStarts(view);
  EXPECT_EQ(starts[0]->ms, kNow + 5);
  EXPECT_FALSE(starts[1]);
}

TEST(LatestStarts, WhatNeverFitsHasNoStart) {
  auto view = Machine(kNow + 5);
  view.waiting = {Waits(9000, 1, 10), Waits(1000, 2, 10)};
  const auto starts = LatestStarts(view);
  EXPECT_FALSE(starts[0]);
  EXPECT_EQ(starts[1]->ms, kNow + 5);
}

}  // namespace
}  // namespace athanor
