// For tests only: what every Backend must guarantee. The test of a back end provides a case, with
//
//   Backend& backend();
//   void RestartServer();                // backend() is another object from now on
//   AttemptPlan NewPlan();               // of a script that runs until it is ended
//   void AwaitScript(const AttemptPlan&);   // until an agent looks after it and it runs
//   void KillAgent(const AttemptPlan&);     // the script goes on; back when it is gone
//   int ScriptStarts(const AttemptPlan&);   // so far
//   bool ScriptRuns(const AttemptPlan&);
//
// and INSTANTIATE_TYPED_TEST_SUITE_P(Name, BackendConformance, Case).
#pragma once

#include <gtest/gtest.h>

#include "launch/backend.h"

namespace athanor {

template <class Case>
class BackendConformance : public testing::Test {
 protected:
  std::string Launched(const AttemptPlan& plan) {
    auto handle = case_.backend().Launch({{plan}});
    EXPECT_TRUE(handle) << (handle ? "" : handle.error().what);
    case_.AwaitScript(plan);
    return handle.value_or("");
  }
  HostStatus::State StateOf(const std::string& handle) {
    auto hosts = case_.backend().Poll({handle}).front();
    EXPECT_TRUE(hosts) << (hosts ? "" : hosts.error().what);
    EXPECT_TRUE(!hosts || hosts->size() == 1);
    return hosts && !hosts->empty() ? hosts->front().state : HostStatus::State::kGone;
  }
  ErrorCode PollError(const std::string& handle) {
    auto hosts = case_.backend().Poll({handle}).front();
    EXPECT_FALSE(hosts);
    return hosts ? ErrorCode::kBug : hosts.error().code;
  }
  Case case_;
};
TYPED_TEST_SUITE_P(BackendConformance);

TYPED_TEST_P(BackendConformance, WhatWasLaunchedIsAlive) {
  auto plan = this->case_.NewPlan();
  auto handle = this->Launched(plan);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
  EXPECT_EQ(this->case_.ScriptStarts(plan), 1);
}

TYPED_TEST_P(BackendConformance, LaunchingWhatRunsStartsNothing) {
  auto plan = this->case_.NewPlan();
  auto handle = this->Launched(plan);
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->case_.ScriptStarts(plan), 1);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
}

TYPED_TEST_P(BackendConformance, AnAgentThatDiedIsReplacedAndTheScriptIsNotStartedAgain) {
  auto plan = this->case_.NewPlan();
  auto handle = this->Launched(plan);
  this->case_.KillAgent(plan);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAgentGone);
  EXPECT_TRUE(this->case_.ScriptRuns(plan));
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
  EXPECT_EQ(this->case_.ScriptStarts(plan), 1);
}

TYPED_TEST_P(BackendConformance, ARestartedServerFindsWhatAnEarlierOneLaunched) {
  auto plan = this->case_.NewPlan();
  auto handle = this->Launched(plan);
  this->case_.RestartServer();
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->case_.ScriptStarts(plan), 1);
}

TYPED_TEST_P(BackendConformance, WhatWasNeverLaunchedIsNotFound) {
  EXPECT_EQ(this->PollError(AttemptId::New().ToString()), ErrorCode::kNotFound);
}

TYPED_TEST_P(BackendConformance, ReleaseEndsWhatIsLeftAndForgetsIt) {
  auto plan = this->case_.NewPlan();
  auto other = this->case_.NewPlan();
  auto handle = this->Launched(plan);
  auto stays = this->Launched(other);
  this->case_.KillAgent(plan);
  auto released = this->case_.backend().Release(handle);
  EXPECT_TRUE(released) << (released ? "" : released.error().what);
  EXPECT_FALSE(this->case_.ScriptRuns(plan));
  EXPECT_EQ(this->PollError(handle), ErrorCode::kNotFound);
  EXPECT_EQ(this->StateOf(stays), HostStatus::State::kAlive);
  EXPECT_TRUE(this->case_.ScriptRuns(other));
}

TYPED_TEST_P(BackendConformance, ReleaseSucceedsWhenNothingIsLeft) {
  auto plan = this->case_.NewPlan();
  auto handle = this->Launched(plan);
  EXPECT_TRUE(this->case_.backend().Release(handle));
  EXPECT_TRUE(this->case_.backend().Release(handle));
  EXPECT_TRUE(this->case_.backend().Release(AttemptId::New().ToString()));
}

REGISTER_TYPED_TEST_SUITE_P(BackendConformance, WhatWasLaunchedIsAlive,
                            LaunchingWhatRunsStartsNothing,
                            AnAgentThatDiedIsReplacedAndTheScriptIsNotStartedAgain,
                            ARestartedServerFindsWhatAnEarlierOneLaunched,
                            WhatWasNeverLaunchedIsNotFound, ReleaseEndsWhatIsLeftAndForgetsIt,
                            ReleaseSucceedsWhenNothingIsLeft);

}  // namespace athanor
