// What the engine keeps of the line and of those that hold room; the promises under faults are
// sim/simulation_test.cc's.
#include "steer/engine_testing.h"

namespace athanor {
namespace {

TEST_F(EngineTest, TheLineIsInTheOrderOfTheQueueAlsoAfterARestart) {
  Submit("holds", 4);
  Submit("first", 4);
  Submit("second", 4);
  Submit("hurried", 4, 5);
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(Holders(), Names{"holds"});
    EXPECT_EQ(Line(), (Names{"hurried", "first", "second"}));
    engine_.reset();
    Begin();
  }
}

// Planted bug: plan only when room comes free, and the small one waits for nothing.
TEST_F(EngineTest, AStopOfTheHeadOfTheLineLetsThoseBehindItStart) {
  Submit("holds", 3);
  const JobId large = Submit("large", 4);
  Submit("small", 1);
  EXPECT_EQ(Line(), (Names{"large", "small"})) << "the free CPU is the large one's";
  Stop(large);
  EXPECT_EQ(Line(), Names{});
  EXPECT_EQ(Holders(), (Names{"holds", "small"}));
}

// Planted bug: set a timer for each that waits, or plan again and again.
TEST_F(EngineTest, ALongLineCostsNothingWhileNothingChanges) {
  Submit("holds", 4);
  for (int i = 0; i < 200; ++i) Submit("waits", 4);
  executor_.RunFor(std::chrono::hours(1));
  const size_t ran = executor_.RunFor(std::chrono::minutes(1));
  // A look at what runs, once a second, and what that look posts.
  EXPECT_LE(ran, 130u);
}

TEST_F(EngineTest, ALongLineMovesUpWhenRoomComes) {
  const JobId holds = Submit("holds", 4);
  for (int i = 0; i < 100; ++i) Submit("waits", 4);
  EXPECT_EQ(engine_->waiting_count(), 100u);
  engine_->Apply(holds,
                 HostLost{engine_->Live(holds)->current()->id, {"agent_lost", "gone", "", ""}});
  executor_.RunFor(std::chrono::seconds(5));
  EXPECT_EQ(engine_->waiting_count(), 99u);
  EXPECT_EQ(Holders(), Names{"waits"});
}

// Planted bug: launch with what there is of a plan.
TEST_F(EngineTest, WhatCannotBePlannedFailsWithTheReasonAndIsNotTriedAgain) {
  retries_ = 3;
  no_plan_ = Error{ErrorCode::kInvalid, "agents there cannot reach this server", "ath server stop"};
  const JobId job = Submit("far", 1);
  EXPECT_EQ(engine_->Live(job), nullptr);
  EXPECT_TRUE(starts_.empty());
  const auto record = jobs_->Find(job).value();
  EXPECT_EQ(record.state, JobState::kFailed);
  ASSERT_EQ(record.attempts.size(), 1u);
  EXPECT_EQ(record.cause.kind, "launch_failed");
  EXPECT_EQ(record.cause.text, no_plan_->what);
  EXPECT_EQ(record.cause.hint, no_plan_->hint);
  no_plan_.reset();
  EXPECT_NE(engine_->Live(Submit("near", 1)), nullptr);
}

}  // namespace
}  // namespace athanor
