#include "study/decide.h"

#include <gtest/gtest.h>

#include <cmath>

namespace athanor {
namespace {

using Kind = StudyEvent::Kind;

StudyRecord Running(int64_t trials, int64_t running) {
  StudyRecord record;
  record.spec.name = "digits";
  record.spec.metric = "loss";
  record.spec.max_trials = 10;
  record.spec.parallel = 4;
  for (int64_t i = 1; i <= trials; ++i) {
    TrialRecord trial;
    trial.number = i;
    trial.state = i > trials - running ? TrialState::kRunning : TrialState::kDone;
    if (trial.state == TrialState::kDone) trial.value = 1.0 / static_cast<double>(i);
    trial.ended = WallTime{i};
    record.trials.push_back(trial);
  }
  return record;
}

TEST(StudyDecide, AsksForAsManyAsFitAndAreLeft) {
  EXPECT_EQ(Decide(Running(0, 0), 0, {}).ask, 4);
  EXPECT_EQ(Decide(Running(5, 3), 0, {}).ask, 1);
  EXPECT_EQ(Decide(Running(5, 4), 0, {}).ask, 0);
  EXPECT_EQ(Decide(Running(9, 1), 0, {}).ask, 1);
  EXPECT_EQ(Decide(Running(10, 1), 0, {}).ask, 0);
  auto exhausted = Running(5, 1);
  exhausted.exhausted = true;
  EXPECT_EQ(Decide(exhausted, 0, {}).ask, 0);
}

TEST(StudyDecide, EndsOnlyWhenTheLastTrialIsOver) {
  EXPECT_FALSE(Decide(Running(10, 1), 0, {}).event);
  const auto plan = Decide(Running(10, 0), 0, {});
  ASSERT_TRUE(plan.event);
  EXPECT_EQ(plan.event->cause.kind, "max_trials");
  EXPECT_FALSE(plan.event->cause.hint.empty());
}

TEST(StudyDecide, WhatRunsIsStoppedWhenTheStudyEnds) {
  auto record = Running(5, 2);
  record.state = StudyState::kFinishing;
  record.trials[4].state = TrialState::kAsked;
  const auto plan = Decide(record, 0, {});
  EXPECT_EQ(plan.stop, std::vector<int64_t>{4});
  EXPECT_EQ(plan.ask, 0);
  ASSERT_TRUE(plan.event);
  EXPECT_EQ(plan.event->kind, Kind::kEnded);
  EXPECT_EQ(plan.event->trial, 5);
}

TEST(StudyDecide, TheMoneyOfRunningTrialsCounts) {
  auto record = Running(3, 2);
  record.spec.budget_micros = 100;
  EXPECT_FALSE(Decide(record, 99, {}).event);
  ASSERT_TRUE(Decide(record, 100, {}).event);
  EXPECT_EQ(Decide(record, 100, {}).event->cause.kind, "budget_spent");
}

TEST(StudyDecide, ATargetIsReachedFromTheGoalsSide) {
  auto record = Running(3, 2);  // one value: 1
  record.spec.target = 1;
  EXPECT_TRUE(Decide(record, 0, {}).event);
  record.spec.target = 0.9;
  EXPECT_FALSE(Decide(record, 0, {}).event);
  record.spec.maximize = true;
  EXPECT_TRUE(Decide(record, 0, {}).event);
}

TEST(StudyDecide, JudgesHowATrialEnded) {
  struct Case {
    JobState state;
    KnownCause cause;
    std::optional<double> value;
    bool stopping;
    Kind kind;
    TrialState outcome;
    bool told;
  };
  const Case cases[] = {
      {JobState::kCompleted, "completed", 0.5, false, Kind::kEnded, TrialState::kDone, true},
      {JobState::kCompleted, "completed", std::nan(""), false, Kind::kEnded, TrialState::kFailed,
       true},
      {JobState::kCompleted, "completed", {}, false, Kind::kEnded, TrialState::kFailed, true},
      {JobState::kCompleted, "completed", 0.5, true, Kind::kEnded, TrialState::kStopped, true},
      {JobState::kFailed, "python_exception", 0.5, false, Kind::kEnded, TrialState::kFailed, true},
      {JobState::kFailed, "out_of_memory", {}, false, Kind::kEnded, TrialState::kFailed, true},
      {JobState::kFailed, "agent_lost", 0.5, false, Kind::kLost, TrialState::kDone, false},
      {JobState::kStopped, "user_stop", 0.5, false, Kind::kEnded, TrialState::kStopped, true},
      {JobState::kStopped, "user_stop", {}, false, Kind::kEnded, TrialState::kStopped, false},
      {JobState::kStopped, "trial_stopped", {}, true, Kind::kEnded, TrialState::kFailed, true},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(std::string(each.cause.name()));
    auto record = Running(1, 1);
    record.trials[0].stopping = each.stopping;
    const auto event =
        JudgeEnd(record, 1, {each.state, {each.cause, "", "", ""}, each.value, 3}, {});
    EXPECT_EQ(event.kind, each.kind);
    if (event.kind == Kind::kLost) continue;
    EXPECT_EQ(event.outcome, each.outcome);
    EXPECT_EQ(event.told, each.told);
  }
}

TEST(StudyDecide, ConvergenceIsABestThatStoppedMoving) {
  auto record = Running(0, 0);
  record.spec.converge = true;
  record.spec.max_trials = 100;
  for (int64_t i = 1; i <= 30; ++i) {
    TrialRecord trial;
    trial.number = i;
    trial.state = TrialState::kDone;
    trial.value = i < 12 ? 10.0 - static_cast<double>(i) * 0.8 : 5.0;
    record.trials.push_back(trial);
    if (i == 15) {
      EXPECT_FALSE(Converged(record));
    }
  }
  EXPECT_TRUE(Converged(record));
  EXPECT_EQ(Decide(record, 0, {}).event->cause.kind, "converged");
}

TEST(Referee, TheSameReportsGiveTheSameVerdictsAfterAReplay) {
  StudySpec spec;
  spec.name = "digits";
  spec.early.rule = EarlyStopSpec::Rule::kAsha;
  spec.early.last = 27;
  spec.maximize = true;
  Referee first(spec), second(spec);
  for (int64_t trial = 1; trial <= 12; ++trial) {
    for (const int64_t step : {1, 3, 9}) {
      StudyEvent event;
      event.kind = Kind::kReported;
      event.trial = trial;
      event.points = {{step, static_cast<double>((trial * 7) % 12)}};
      const bool stops = first.Report(trial, event.points[0]).has_value();
      if (trial < 8) {
        second.Replay(event);
      } else {
        EXPECT_EQ(second.Report(trial, event.points[0]).has_value(), stops) << trial << " " << step;
      }
    }
  }
}

}  // namespace
}  // namespace athanor
