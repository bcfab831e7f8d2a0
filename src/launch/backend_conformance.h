// For tests only: what every Backend must guarantee. The test of a back end provides a case, with
//
//   Backend& backend();
//   void RestartServer();                // backend() is another object from now on
//   LaunchPlan NewPlan(size_t hosts);    // of scripts that run until they are ended
//   void AwaitScript(const AttemptPlan&);   // of this host: until an agent looks after it and it
//   runs void KillAgent(const AttemptPlan&);     // of this host; the script goes on; back when it
//   is gone int ScriptStarts(const AttemptPlan&);   // on this host, so far bool ScriptRuns(const
//   AttemptPlan&);    // on this host void BreakHost(const AttemptPlan&);     // from now on,
//   starting this host fails (gangs only)
//
// and INSTANTIATE_TYPED_TEST_SUITE_P(Name, BackendConformance, Case). A back end whose attempts may
// have several hosts also instantiates GangConformance.
#pragma once

#include <gtest/gtest.h>

#include "launch/backend.h"

namespace athanor {

template <class Case>
class BackendConformance : public testing::Test {
 protected:
  using State = HostStatus::State;

  std::string Launched(const LaunchPlan& plan) {
    auto handle = case_.backend().Launch(plan);
    EXPECT_TRUE(handle) << (handle ? "" : handle.error().what);
    for (const auto& host : plan.hosts) case_.AwaitScript(host);
    return handle.value_or("");
  }
  std::vector<State> StatesOf(const std::string& handle) {
    auto hosts = case_.backend().Poll({handle}).front();
    EXPECT_TRUE(hosts) << (hosts ? "" : hosts.error().what);
    std::vector<State> states;
    for (const auto& host : hosts.value_or(std::vector<HostStatus>())) states.push_back(host.state);
    return states;
  }
  State StateOf(const std::string& handle) {
    const auto states = StatesOf(handle);
    EXPECT_EQ(states.size(), 1u);
    return states.empty() ? State::kGone : states.front();
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
  auto plan = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
  EXPECT_EQ(this->case_.ScriptStarts(plan.hosts[0]), 1);
}

TYPED_TEST_P(BackendConformance, LaunchingWhatRunsStartsNothing) {
  auto plan = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->case_.ScriptStarts(plan.hosts[0]), 1);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
}

TYPED_TEST_P(BackendConformance, AnAgentThatDiedIsReplacedAndTheScriptIsNotStartedAgain) {
  auto plan = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  this->case_.KillAgent(plan.hosts[0]);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAgentGone);
  EXPECT_TRUE(this->case_.ScriptRuns(plan.hosts[0]));
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
  EXPECT_EQ(this->case_.ScriptStarts(plan.hosts[0]), 1);
}

TYPED_TEST_P(BackendConformance, ARestartedServerFindsWhatAnEarlierOneLaunched) {
  auto plan = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  this->case_.RestartServer();
  EXPECT_EQ(this->StateOf(handle), HostStatus::State::kAlive);
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->case_.ScriptStarts(plan.hosts[0]), 1);
}

TYPED_TEST_P(BackendConformance, WhatWasNeverLaunchedIsNotFound) {
  EXPECT_EQ(this->PollError(AttemptId::New().ToString()), ErrorCode::kNotFound);
}

TYPED_TEST_P(BackendConformance, AnswersComeInTheOrderOfTheHandles) {
  auto plan = this->case_.NewPlan(1);
  auto other = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  auto stays = this->Launched(other);
  this->case_.KillAgent(plan.hosts[0]);
  const auto all = this->case_.backend().Poll({stays, AttemptId::New().ToString(), handle});
  ASSERT_EQ(all.size(), 3u);
  ASSERT_TRUE(all[0] && all[2]);
  EXPECT_EQ(all[0]->front().state, HostStatus::State::kAlive);
  EXPECT_FALSE(all[1]);
  EXPECT_EQ(all[2]->front().state, HostStatus::State::kAgentGone);
}

TYPED_TEST_P(BackendConformance, ReleaseEndsWhatIsLeftAndForgetsIt) {
  auto plan = this->case_.NewPlan(1);
  auto other = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  auto stays = this->Launched(other);
  this->case_.KillAgent(plan.hosts[0]);
  auto released = this->case_.backend().Release(handle);
  EXPECT_TRUE(released) << (released ? "" : released.error().what);
  EXPECT_FALSE(this->case_.ScriptRuns(plan.hosts[0]));
  EXPECT_EQ(this->PollError(handle), ErrorCode::kNotFound);
  EXPECT_EQ(this->StateOf(stays), HostStatus::State::kAlive);
  EXPECT_TRUE(this->case_.ScriptRuns(other.hosts[0]));
}

TYPED_TEST_P(BackendConformance, ReleaseSucceedsWhenNothingIsLeft) {
  auto plan = this->case_.NewPlan(1);
  auto handle = this->Launched(plan);
  EXPECT_TRUE(this->case_.backend().Release(handle));
  EXPECT_TRUE(this->case_.backend().Release(handle));
  EXPECT_TRUE(this->case_.backend().Release(AttemptId::New().ToString()));
}

REGISTER_TYPED_TEST_SUITE_P(BackendConformance, WhatWasLaunchedIsAlive,
                            LaunchingWhatRunsStartsNothing,
                            AnAgentThatDiedIsReplacedAndTheScriptIsNotStartedAgain,
                            ARestartedServerFindsWhatAnEarlierOneLaunched,
                            WhatWasNeverLaunchedIsNotFound, AnswersComeInTheOrderOfTheHandles,
                            ReleaseEndsWhatIsLeftAndForgetsIt, ReleaseSucceedsWhenNothingIsLeft);

template <class Case>
class GangConformance : public BackendConformance<Case> {};
TYPED_TEST_SUITE_P(GangConformance);

TYPED_TEST_P(GangConformance, AllHostsAreAliveUnderOneHandle) {
  auto plan = this->case_.NewPlan(3);
  auto handle = this->Launched(plan);
  EXPECT_EQ(this->StatesOf(handle), std::vector(3, HostStatus::State::kAlive));
  for (const auto& host : plan.hosts) EXPECT_EQ(this->case_.ScriptStarts(host), 1);
}

TYPED_TEST_P(GangConformance, AHostThatLostItsAgentGetsAnotherAndTheOthersAreNotTouched) {
  auto plan = this->case_.NewPlan(3);
  auto handle = this->Launched(plan);
  this->case_.KillAgent(plan.hosts[1]);
  using enum HostStatus::State;
  EXPECT_EQ(this->StatesOf(handle), (std::vector{kAlive, kAgentGone, kAlive}));
  EXPECT_EQ(this->Launched(plan), handle);
  EXPECT_EQ(this->StatesOf(handle), std::vector(3, kAlive));
  for (const auto& host : plan.hosts) EXPECT_EQ(this->case_.ScriptStarts(host), 1);
}

TYPED_TEST_P(GangConformance, ARestartedServerFindsAllHosts) {
  auto plan = this->case_.NewPlan(2);
  auto handle = this->Launched(plan);
  this->case_.RestartServer();
  EXPECT_EQ(this->StatesOf(handle), std::vector(2, HostStatus::State::kAlive));
  EXPECT_EQ(this->Launched(plan), handle);
  for (const auto& host : plan.hosts) EXPECT_EQ(this->case_.ScriptStarts(host), 1);
}

TYPED_TEST_P(GangConformance, ReleaseEndsAllHosts) {
  auto plan = this->case_.NewPlan(3);
  auto other = this->case_.NewPlan(2);
  auto handle = this->Launched(plan);
  auto stays = this->Launched(other);
  this->case_.KillAgent(plan.hosts[2]);
  auto released = this->case_.backend().Release(handle);
  EXPECT_TRUE(released) << (released ? "" : released.error().what);
  for (const auto& host : plan.hosts) EXPECT_FALSE(this->case_.ScriptRuns(host));
  EXPECT_EQ(this->PollError(handle), ErrorCode::kNotFound);
  EXPECT_EQ(this->StatesOf(stays), std::vector(2, HostStatus::State::kAlive));
}

TYPED_TEST_P(GangConformance, IfOneHostCannotBeStartedNoneIs) {
  auto plan = this->case_.NewPlan(3);
  this->case_.BreakHost(plan.hosts[1]);
  EXPECT_FALSE(this->case_.backend().Launch(plan));
  EXPECT_TRUE(this->case_.backend().Release(plan.attempt().ToString()));
  for (const auto& host : plan.hosts) EXPECT_FALSE(this->case_.ScriptRuns(host));
}

REGISTER_TYPED_TEST_SUITE_P(GangConformance, AllHostsAreAliveUnderOneHandle,
                            AHostThatLostItsAgentGetsAnotherAndTheOthersAreNotTouched,
                            ARestartedServerFindsAllHosts, ReleaseEndsAllHosts,
                            IfOneHostCannotBeStartedNoneIs);

}  // namespace athanor
