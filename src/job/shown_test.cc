#include "job/shown.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr WallTime kNow{1'000'000'000};

JobRecord Job(JobState state, int64_t silent_ms = 0) {
  JobRecord record;
  record.spec.name = "my job";
  record.state = state;
  record.attempts.emplace_back();
  record.last_seen = {kNow.ms - silent_ms};
  return record;
}

TEST(Shown, AnOrdinaryStateIsShownAsItIs) {
  for (const JobState state : kAllStates) {
    EXPECT_EQ(NameOf(state), ShownState(Job(state), kNow));
    EXPECT_EQ(Cause{}, ShownCause(Job(state), kNow));
  }
}

// Planted bug: without the look at last_seen.
TEST(Shown, ASilentAgentIsUnknownAndNotFine) {
  EXPECT_EQ("Running", ShownState(Job(JobState::kRunning, 30'000), kNow));
  EXPECT_EQ("Unknown", ShownState(Job(JobState::kRunning, 30'001), kNow));
  EXPECT_EQ("Unknown", ShownState(Job(JobState::kUploading, 90'000), kNow));
  EXPECT_EQ("Queued", ShownState(Job(JobState::kQueued, 90'000), kNow));
  EXPECT_EQ("Failed", ShownState(Job(JobState::kFailed, 90'000), kNow));
  const Cause cause = ShownCause(Job(JobState::kRunning, 90'000), kNow);
  EXPECT_EQ("agent_silent", cause.kind);
  EXPECT_NE(std::string::npos, cause.text.find("no word from its agent for 1 m 30 s"))
      << cause.text;
  EXPECT_NE(std::string::npos, cause.hint.find("ath logs -f 'my job'")) << cause.hint;
  EXPECT_NE(std::string::npos, cause.hint.find("pkill")) << cause.hint;
  EXPECT_EQ(kNow.ms - 90'000, SilentSince(Job(JobState::kRunning, 90'000), kNow)->ms);
}

TEST(Shown, OfAGangTheHostThatIsSilentTheLongestIsNamed) {
  auto record = Job(JobState::kRunning);
  auto& hosts = record.current()->hosts;
  hosts.resize(3);
  for (uint32_t i = 0; i < 3; ++i) {
    hosts[i].name = HostNameOf(i);
    hosts[i].last_seen = {kNow.ms - 45'000 * i};
  }
  hosts[2].over = kNow;  // nothing more is expected of it
  EXPECT_EQ("Unknown", ShownState(record, kNow));
  const auto text = ShownCause(record, kNow).text;
  EXPECT_NE(std::string::npos, text.find("no word from the agent of algo-2 for 45 s")) << text;
  hosts[1].over = kNow;
  EXPECT_EQ("Running", ShownState(record, kNow));
}

TEST(Shown, AStopIsShownUntilTheJobIsOver) {
  auto record = Job(JobState::kRunning, 60'000);
  record.stop = StopRequest{{"user_stop", "stopped by ada", "ath retry x", ""}, "ada", kNow, {}};
  EXPECT_EQ("Stopping", ShownState(record, kNow));
  const Cause cause = ShownCause(record, kNow);
  EXPECT_EQ("user_stop", cause.kind);
  EXPECT_EQ("is being stopped: stopped by ada; no word from its agent for 1 m", cause.text);
  record.state = JobState::kStopped;
  EXPECT_EQ("Stopped", ShownState(record, kNow));
}

TEST(Shown, AnAttemptWhoseMachineGoesIsInterrupting) {
  auto record = Job(JobState::kRunning);
  record.current()->interrupt = StopRequest{{"preempted", "asked by ada", "", ""}, "ada", kNow, {}};
  EXPECT_EQ("Interrupting", ShownState(record, kNow));
  EXPECT_EQ("is being interrupted: asked by ada", ShownCause(record, kNow).text);
  record.state = JobState::kQueued;
  EXPECT_EQ("Queued", ShownState(record, kNow));
}

TEST(Shown, TimeCountsFromWhenTheScriptFirstRan) {
  JobRecord record;
  EXPECT_EQ(FirstStarted(record).ms, 0);
  record.attempts.resize(3);
  record.attempts[0].placed = {10};  // it was given a place, and lost it before the script ran
  EXPECT_EQ(FirstStarted(record).ms, 0);
  record.attempts[1].started = {20};
  record.attempts[2].started = {30};
  EXPECT_EQ(FirstStarted(record).ms, 20);
}

TEST(Shown, MlflowsStatesHaveTheWordsOfJobs) {
  EXPECT_EQ(ShownStatus("FINISHED"), "Completed");
  EXPECT_EQ(ShownStatus("KILLED"), "Stopped");
  EXPECT_EQ(ShownStatus("SCHEDULED"), "Queued");
  EXPECT_EQ(ShownStatus("RUNNING"), "Running");
  EXPECT_EQ(ShownStatus("FAILED"), "Failed");
  EXPECT_EQ(ShownStatus("odd"), "odd");
}

}  // namespace
}  // namespace athanor
