#include "run/rules/watcher.h"

#include <gtest/gtest.h>

#include "job/point.h"

namespace athanor {
namespace {

// A job with a rule, a limit for hangs, and what the watcher made of it.
struct Watched {
  Watched() {
    plan.spec.name = "j";
    plan.spec.limits.hang_after = Seconds(60);
    RuleSpec rule;
    rule.rule = "no_progress";
    rule.name = "stuck";
    rule.metric = "loss";
    rule.after = Seconds(60);
    plan.spec.rules = {rule};
    watcher.emplace(plan, clock,
                    Watcher::Actions{[this](const Firing& firing) { fired.push_back(firing.rule); },
                                     [](const Cause&) {}, [this](const Hang&) { ++hangs; }});
  }
  void Step(int64_t step) {
    PointBatch batch;
    batch.items.push_back({1, {"loss", step, 0, 0.5}});
    watcher->OnPoints(batch);
  }
  void Pass(Seconds time, bool held_up) {
    for (Seconds passed{0}; passed < time; passed += Seconds(1)) {
      clock.Advance(Seconds(1));
      watcher->Tick(0, held_up);
    }
  }

  FakeClock clock;
  AttemptPlan plan;
  std::vector<std::string> fired;
  int hangs = 0;
  std::optional<Watcher> watcher;
};

TEST(Watcher, TellsAHangAndARuleThatTimeAloneMakesTrue) {
  Watched watched;
  watched.Step(1);
  watched.Pass(Seconds(70), false);
  EXPECT_EQ(watched.hangs, 1);
  EXPECT_EQ(watched.fired, std::vector<std::string>{"stuck"});
}

// Planted bug: a script that waits for a full disk is called hung, and perhaps ended.
TEST(Watcher, NoTimePassesWhileAFullDiskHoldsTheScriptUp) {
  Watched watched;
  watched.Step(1);
  watched.Pass(Seconds(10), false);
  watched.Pass(Seconds(1'000), true);
  watched.Pass(Seconds(40), false);
  EXPECT_EQ(watched.hangs, 0);
  EXPECT_TRUE(watched.fired.empty());
  watched.Pass(Seconds(20), false);
  EXPECT_EQ(watched.hangs, 1);
  EXPECT_EQ(watched.fired.size(), 1u);
}

// A job with a rule that fires at every third value above 1, and one that keeps the best by it.
struct Sources {
  Sources() {
    plan.spec.name = "j";
    plan.spec.limits.hang_after = Seconds(60);
    plan.spec.checkpoints.best_metric = "loss";
    RuleSpec rule;
    rule.rule = "above";
    rule.name = "high";
    rule.metric = "loss";
    rule.value = 1;
    rule.window = 3;
    plan.spec.rules = {rule};
    watcher.emplace(plan, clock,
                    Watcher::Actions{[this](const Firing&) { ++fired; }, [](const Cause&) {},
                                     [this](const Hang&) { ++hangs; }});
  }
  void Log(uint32_t channel, std::string name, std::optional<int64_t> step, double value) {
    PointBatch batch;
    batch.channel = channel;
    batch.items.push_back({++seq, {std::move(name), step, 0, value}});
    watcher->OnPoints(batch);
  }

  const uint32_t mlflow = ChannelOfKeptCalls(1);
  FakeClock clock;
  AttemptPlan plan;
  uint64_t seq = 0;
  int fired = 0;
  int hangs = 0;
  std::optional<Watcher> watcher;
};

TEST(Watcher, RulesAndTheBestCheckpointSeeWhatMlflowLogs) {
  Sources job;
  for (int step = 1; step <= 3; ++step) job.Log(job.mlflow, "loss", step, 2);
  EXPECT_EQ(job.fired, 1);
  EXPECT_EQ(job.watcher->last_step(), 3);
  EXPECT_EQ(job.watcher->ValueAt(3), 2);
}

// Planted bug: two loggers of one script make a window of three points full after two.
TEST(Watcher, OneValueThatIsLoggedInSeveralWaysCountsOnce) {
  Sources job;
  for (int step = 1; step <= 2; ++step) {
    job.Log(job.mlflow, "loss", step, 2);
    job.Log(kEventChannel | 1, "loss", step, 2);
    job.Log(kGuessChannel | 1, "loss", step, 2);
  }
  EXPECT_EQ(job.fired, 0);
  job.Log(job.mlflow, "loss", 3, 2);
  EXPECT_EQ(job.fired, 1);
  // Another name is nobody's yet.
  job.Log(kEventChannel | 1, "val", 3, 2);
  EXPECT_EQ(job.fired, 1);
}

TEST(Watcher, WhatAScriptLogsWithoutMlflowGoesBeforeIt) {
  Sources job;
  job.Log(7, "loss", 1, 0.5);
  for (int step = 1; step <= 3; ++step) job.Log(job.mlflow, "loss", step, 2);
  EXPECT_EQ(job.fired, 0);
  EXPECT_EQ(job.watcher->ValueAt(3), 0.5);
}

TEST(Watcher, StepZeroOfMlflowIsNoStepWhereTheScriptIs) {
  Sources job;
  for (int i = 0; i < 3; ++i) job.Log(job.mlflow, "loss", 0, 2);
  EXPECT_EQ(job.fired, 1);
  EXPECT_EQ(job.watcher->last_step(), std::nullopt);
  EXPECT_EQ(job.watcher->ValueAt(100), 2) << "the newest value";
}

TEST(Watcher, LoggingWithMlflowIsASignOfLifeButNotItsLookAtTheMachine) {
  Sources job;
  const auto pass = [&](const char* name) {
    for (int i = 0; i < 100; ++i) {
      job.clock.Advance(Seconds(1));
      job.Log(job.mlflow, name, i, 0.1);
      job.watcher->Tick(0, false);
    }
  };
  pass("loss");
  EXPECT_EQ(job.hangs, 0);
  pass("system/cpu_utilization_percentage");
  EXPECT_EQ(job.hangs, 1);
}

}  // namespace
}  // namespace athanor
