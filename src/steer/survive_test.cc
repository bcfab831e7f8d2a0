// Interruptions, retries and what an end means after a notice.
#include <gtest/gtest.h>

#include "steer/attempts.h"
#include "steer/decide.h"

namespace athanor {
namespace {

JobRecord Apply(const JobRecord& record, const JobEvent& event, int64_t now = 2'000) {
  auto decision = Decide(record, event, {now});
  EXPECT_TRUE(decision) << (decision ? "" : decision.error().what);
  return decision ? decision->record : record;
}

JobRecord Running(JobRecord record = {}) {
  if (record.id.is_zero()) {
    record.id = JobId::New();
    record.spec.name = "j";
    record = Apply(record, Submitted{});
  }
  auto attempt = AttemptId::New();
  record = Apply(record, Placed{attempt, {}});
  record = Apply(record, AgentUp{attempt});
  return Apply(record, ScriptStarted{attempt, 100, {}});
}

JobRecord Ended(JobRecord record, ExitInfo exit, KnownCause kind, int64_t held_ms = 10'000) {
  auto attempt = record.current()->id;
  record.current()->held_ms = held_ms;
  record = Apply(record,
                 ScriptEnded{attempt, std::move(exit), {kind, std::string(kind.name()), "", ""}});
  return Apply(record, Uploaded{attempt, {}, {}, {}}, 5'000);
}

ExitInfo AfterNotice(int32_t code, int64_t saved_ms = -1, bool done = false) {
  ExitInfo exit;
  exit.code = code;
  exit.notice_ms = 1'500;
  exit.saved_ms = saved_ms;
  exit.done_called = done;
  return exit;
}

InterruptAsked Taken() { return {{"preempted", "taken away", "", ""}, "ann", Millis(120'000)}; }

CheckpointKept Kept(const JobRecord& record, const char* id, int64_t held_ms) {
  CheckpointInfo info;
  info.id = id;
  info.held_ms = held_ms;
  info.step = 40;
  return {record.current()->id, info, {}};
}

TEST(Survive, AnInterruptedAttemptIsFollowedByAnotherAndTheScriptsOwnCodeDoesNotMatter) {
  for (int code : {0, 1, 143}) {
    auto record = Apply(Running(), Taken());
    record = Ended(record, AfterNotice(code, 800), code == 0 ? "completed" : "nonzero_exit");
    EXPECT_EQ(record.state, JobState::kQueued) << code;
    EXPECT_EQ(record.attempts.back().cause.kind, "preempted") << code;
    EXPECT_NE(record.attempts.back().cause.text.find("saved in"), std::string::npos);
    EXPECT_EQ(record.retries, 0u);
    EXPECT_EQ(NotBefore(record).ms, 5'000) << "a taken machine is no reason to wait";
  }
}

TEST(Survive, StatusZeroAfterOurSignalIsNotTheEndUnlessTheScriptSaidDone) {
  auto stop = StopAsked{{"user_stop", "stopped by ann", "", ""}, "ann", Millis(1'000)};
  EXPECT_EQ(Ended(Apply(Running(), stop), AfterNotice(0), "completed").state, JobState::kStopped);
  EXPECT_EQ(Ended(Apply(Running(), stop), AfterNotice(0, -1, true), "completed").state,
            JobState::kCompleted);
  EXPECT_EQ(Ended(Apply(Running(), Taken()), AfterNotice(0, -1, true), "completed").state,
            JobState::kCompleted);
  // It ended by itself before the signal could reach it.
  ExitInfo natural;
  natural.code = 0;
  EXPECT_EQ(Ended(Apply(Running(), Taken()), natural, "completed").state, JobState::kCompleted);
}

TEST(Survive, AUserStopWinsOverAnInterruption) {
  auto record = Apply(Running(), Taken());
  record = Apply(record, StopAsked{{"user_stop", "stopped", "", ""}, "ann", Millis(1)});
  record = Ended(record, AfterNotice(143), "signal");
  EXPECT_EQ(record.state, JobState::kStopped);
  EXPECT_EQ(record.cause.kind, "user_stop");
}

TEST(Survive, MachinesFaultsDoNotSpendTheUsersRetries) {
  auto record = Running();
  record.spec.retry.max = 1;
  record.spec.retry.on = {"nonzero_exit"};
  for (int i = 0; i < 3; ++i) {
    record = Apply(record, HostLost{record.current()->id, {"agent_lost", "gone", "", ""}});
    ASSERT_EQ(record.state, JobState::kQueued);
    record = Running(record);
  }
  EXPECT_EQ(record.retries, 0u);
  record = Ended(record, ExitInfo{1}, "nonzero_exit");
  EXPECT_EQ(record.state, JobState::kQueued);
  EXPECT_EQ(record.retries, 1u);
  EXPECT_EQ(Ended(Running(record), ExitInfo{1}, "nonzero_exit").state, JobState::kFailed);
}

TEST(Survive, AMachineThatIsLostForEverWithoutProgressIsGivenUp) {
  auto record = Running();
  record.spec.retry.max = 1;
  int lost = 0;
  while (record.state != JobState::kFailed && lost < 50) {
    record = Apply(record, HostLost{record.current()->id, {"agent_lost", "gone", "", ""}});
    ++lost;
    if (record.state == JobState::kQueued) record = Running(record);
  }
  EXPECT_EQ(lost, 10);
}

TEST(Survive, ALostMachineIsReplacedWithoutBeingAskedWhenThereIsACheckpoint) {
  auto record = Running();
  auto lost = HostLost{record.current()->id, {"agent_lost", "gone", "", ""}};
  EXPECT_EQ(Apply(record, lost).state, JobState::kFailed);
  EXPECT_EQ(Apply(Apply(record, Kept(record, "1-1", 5'000)), lost).state, JobState::kQueued);
}

TEST(Survive, RetryNamesExitCodesAndLogPatterns) {
  for (const char* word : {"exit:75", "log:NCCL"}) {
    auto record = Running();
    record.spec.retry = {1, {word}, Millis(0), {}};
    ExitInfo exit{75};
    exit.matched = {"log:NCCL"};
    EXPECT_EQ(Ended(record, exit, "nonzero_exit").state, JobState::kQueued) << word;
    EXPECT_EQ(Ended(record, ExitInfo{1}, "nonzero_exit").state, JobState::kFailed) << word;
  }
}

TEST(Survive, AClassToldMoreExactlyIsStillCoveredByTheGeneralOne) {
  for (const char* word : {"python_exception", "nonzero_exit", "network_error"}) {
    auto record = Running();
    record.spec.retry = {1, {word}, Millis(0), {}};
    EXPECT_EQ(Ended(record, ExitInfo{1}, "network_error").state, JobState::kQueued) << word;
    EXPECT_EQ(Ended(record, ExitInfo{-1, 11}, "segfault").state, JobState::kFailed) << word;
  }
}

TEST(Survive, OutOfMemoryClimbsTheTypesAndThenFails) {
  auto record = Running();
  record.spec.resources.type = "ml.m5.large";
  record.spec.retry.escalate = {"ml.m5.xlarge", "ml.m5.2xlarge"};
  record = Ended(record, ExitInfo{-1, 9, true}, "out_of_memory");
  ASSERT_EQ(record.state, JobState::kQueued);
  EXPECT_EQ(NextResources(record).type, "ml.m5.xlarge");
  record = Ended(Running(record), ExitInfo{-1, 9, true}, "out_of_memory");
  ASSERT_EQ(record.state, JobState::kQueued);
  EXPECT_EQ(NextResources(record).type, "ml.m5.2xlarge");
  EXPECT_EQ(Ended(Running(record), ExitInfo{-1, 9, true}, "out_of_memory").state,
            JobState::kFailed);
}

TEST(Survive, TimeLostIsWhatCameAfterTheLastCheckpoint) {
  auto record = Running();
  record = Apply(record, Kept(record, "1-1", 7'000));
  record = Ended(Apply(record, Taken()), AfterNotice(143), "signal", 10'000);
  EXPECT_EQ(record.attempts.back().lost_ms, 3'000);
  record = Ended(Apply(Running(record), Taken()), AfterNotice(143), "signal", 10'000);
  EXPECT_EQ(record.attempts.back().lost_ms, 9'900) << "all but the set-up";
}

TEST(Survive, MaxWaitEndsTheJobOrLetsItFallBack) {
  auto record = Running();
  record.spec.resources.spot = {true, Millis(1'000)};
  auto ended = Apply(record, WaitedTooLong{});
  ASSERT_TRUE(ended.stop);
  EXPECT_EQ(Ended(ended, AfterNotice(143), "signal").state, JobState::kStopped);
  record.spec.resources.spot.fallback = true;
  auto fell = Apply(record, WaitedTooLong{});
  EXPECT_FALSE(fell.stop);
  EXPECT_TRUE(fell.spot_fell_back);
  EXPECT_FALSE(PreemptAfter(fell));
  fell = Running(Ended(Apply(fell, Taken()), AfterNotice(143), "signal"));
  EXPECT_FALSE(fell.current()->spot);
}

TEST(Survive, ACheckpointOrFiringToldTwiceIsInTheHistoryOnce) {
  auto record = Running();
  record = Apply(record, Kept(record, "1-1", 5'000));
  auto again = Decide(record, Kept(record, "1-1", 5'000), {3'000});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->events.empty());
  RuleFired fired{record.current()->id, {"nan", "nan", "loss", 7, "NaN", "", "mark", "", {}}};
  record = Apply(record, fired);
  again = Decide(record, fired, {3'000});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->events.empty());
  EXPECT_EQ(again->record.firings.size(), 1u);
}

TEST(Survive, AReplacedAttemptsCheckpointIsRefused) {
  auto record = Running();
  auto late = Kept(record, "1-1", 5'000);
  record = Running(Ended(Apply(record, Taken()), AfterNotice(143), "signal"));
  EXPECT_FALSE(Decide(record, late, {9'000}));
}

TEST(Survive, NothingIsAddedToAHistoryAfterItsEnd) {
  auto record = Running();
  record.spec.resources.spot.use = true;
  record.spec.resources.spot.fallback = true;
  const auto attempt = record.current()->id;
  record = Ended(record, ExitInfo{0}, "completed");
  ASSERT_EQ(record.state, JobState::kCompleted);
  for (const JobEvent& event :
       {JobEvent(Noted{attempt, {"log_capped", "cut", "", ""}}), JobEvent(WaitedTooLong{}),
        JobEvent(Uploaded{attempt, {}, {}, {}})}) {
    auto decision = Decide(record, event, {9'000});
    ASSERT_FALSE(decision) << NameOf(event);
    EXPECT_EQ(decision.error().code, ErrorCode::kConflict);
  }
}

TEST(Survive, AFullDiskIsTheReasonOfARunningJobForAsLongAsItIsFull) {
  const auto record = Running();
  const auto attempt = record.current()->id;
  const Noted full{attempt, {"waiting_disk", "waits for disk space", "df -h", ""}};
  const Noted room{attempt, {"disk_room", "there is room again", "", ""}};
  EXPECT_TRUE(Decide(record, room, {3'000})->events.empty());  // nothing was wrong
  const auto waits = Decide(record, full, {3'000});
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->record.cause.kind, "waiting_disk");
  ASSERT_EQ(waits->events.size(), 1u);
  EXPECT_TRUE(Decide(waits->record, full, {3'001})->events.empty());  // said twice
  const auto goes_on = Decide(waits->record, room, {3'002});
  EXPECT_EQ(goes_on->record.cause, Cause{});
  EXPECT_EQ(goes_on->events.size(), 1u);
  EXPECT_EQ(Ended(waits->record, ExitInfo{0}, "completed").cause.kind, "completed");
}

}  // namespace
}  // namespace athanor
