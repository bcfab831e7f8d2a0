#include "steer/decide.h"

#include <gtest/gtest.h>

#include <random>

#include "steer/attempts.h"

namespace athanor {
namespace {

JobRecord Queued() {
  JobRecord record;
  record.id = JobId::New();
  record.spec.name = "j";
  return Decide(record, Submitted{}, {1000})->record;
}

JobRecord Apply(const JobRecord& record, const JobEvent& event, int64_t now = 2000) {
  auto decision = Decide(record, event, {now});
  EXPECT_TRUE(decision) << decision.error().what;
  return decision ? decision->record : record;
}

JobRecord Running(AttemptId& attempt) {
  attempt = AttemptId::New();
  auto record = Apply(Queued(), Placed{attempt, {}});
  record = Apply(record, Launched{attempt, attempt.ToString()});
  record = Apply(record, AgentUp{attempt});
  return Apply(record, ScriptStarted{attempt, 5, {}});
}

TEST(Decide, TheHappyPathEndsCompletedWithEveryStepInTheHistory) {
  AttemptId attempt;
  auto record = Running(attempt);
  EXPECT_EQ(record.state, JobState::kRunning);
  record = Apply(record, ScriptEnded{attempt, ExitInfo{0}, {"completed", "", "", ""}});
  EXPECT_EQ(record.state, JobState::kUploading);
  auto last = Decide(record, Uploaded{attempt, {}, {}, {}}, {9000});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->record.state, JobState::kCompleted);
  EXPECT_EQ(last->record.ended.ms, 9000);
  ASSERT_EQ(last->effects.size(), 1u);
  EXPECT_EQ(last->effects[0].kind, EffectKind::kRelease);
}

TEST(Decide, AQueuedJobStopsAtOnceAndARunningOneAfterItsScriptEnded) {
  StopAsked ask{{"user_stop", "stopped by ann", "", ""}, "ann", Millis(10)};
  EXPECT_EQ(Apply(Queued(), ask).state, JobState::kStopped);

  AttemptId attempt;
  auto running = Running(attempt);
  auto decision = Decide(running, ask, {3000});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->record.state, JobState::kRunning);
  ASSERT_EQ(decision->effects.size(), 1u);
  EXPECT_EQ(decision->effects[0].kind, EffectKind::kStop);
  auto again = Decide(decision->record, ask, {3001});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->effects.empty());
  auto ended = Apply(decision->record,
                     ScriptEnded{attempt, ExitInfo{-1, 15}, {"signal", "SIGTERM", "", ""}});
  ended = Apply(ended, Uploaded{attempt, {}, {}, {}});
  EXPECT_EQ(ended.state, JobState::kStopped);
  EXPECT_EQ(ended.cause.kind, "user_stop");
}

TEST(Decide, AStopThatIsAskedForAgainWithLessGraceIsHastened) {
  StopAsked ask{{"user_stop", "stopped by ann", "", ""}, "ann", Millis(120'000)};
  AttemptId attempt;
  const auto stopping = Apply(Running(attempt), ask);
  ask.grace = Millis(0);
  const auto now = Decide(stopping, ask, {3000});
  ASSERT_TRUE(now);
  EXPECT_EQ(now->record.stop->grace, Millis(0));
  EXPECT_EQ(now->record.stop->at, stopping.stop->at);
  ASSERT_EQ(now->effects.size(), 1u);
  EXPECT_EQ(now->effects[0].kind, EffectKind::kStop);
  ASSERT_EQ(now->events.size(), 1u);
  EXPECT_EQ(now->events[0].name, "stop_hastened");
  ask.grace = Millis(120'000);
  const auto later = Decide(now->record, ask, {3001});
  ASSERT_TRUE(later);
  EXPECT_EQ(later->record.stop->grace, Millis(0)) << "patience does not come back";
  EXPECT_TRUE(later->effects.empty());
}

TEST(Decide, ReportsOfAReplacedAttemptAreFencedOff) {
  AttemptId attempt;
  auto record = Running(attempt);
  record.spec.retry.max = 1;
  record = Apply(record, HostLost{attempt, {"agent_lost", "gone", "", ""}});
  EXPECT_EQ(record.state, JobState::kQueued);
  auto second = AttemptId::New();
  record = Apply(record, Placed{second, {}});
  auto late = Decide(record, ScriptEnded{attempt, ExitInfo{0}, {"completed", "", "", ""}}, {1});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
  EXPECT_EQ(record.current()->number, 2u);
}

TEST(Decide, AScriptsOwnFailureIsNotRetriedUnlessNamed) {
  AttemptId attempt;
  auto record = Running(attempt);
  record.spec.retry.max = 3;
  auto failed = Apply(record, ScriptEnded{attempt, ExitInfo{1}, {"nonzero_exit", "1", "", ""}});
  EXPECT_EQ(Apply(failed, Uploaded{attempt, {}, {}, {}}).state, JobState::kFailed);
  record.spec.retry.on = {"nonzero_exit"};
  failed = Apply(record, ScriptEnded{attempt, ExitInfo{1}, {"nonzero_exit", "1", "", ""}});
  EXPECT_EQ(Apply(failed, Uploaded{attempt, {}, {}, {}}).state, JobState::kQueued);
}

TEST(Decide, LaunchFailuresPauseLongerEachTimeAndGiveUp) {
  auto record = Queued();
  int64_t pause = 0;
  for (int i = 0; i < 3; ++i) {
    auto attempt = AttemptId::New();
    record = Apply(record, Placed{attempt, {}});
    record = Apply(record, LaunchFailed{attempt, {"launch_failed", "fork", "", ""}, false}, 5000);
    if (i < 2) {
      EXPECT_EQ(record.state, JobState::kQueued);
      EXPECT_GT(NotBefore(record).ms - 5000, pause);
      pause = NotBefore(record).ms - 5000;
    }
  }
  EXPECT_EQ(record.state, JobState::kFailed);
}

TEST(Decide, LostOutputsTurnSuccessIntoFailure) {
  AttemptId attempt;
  auto record = Running(attempt);
  record = Apply(record, ScriptEnded{attempt, ExitInfo{0}, {"completed", "", "", ""}});
  record = Apply(record, Uploaded{attempt, {}, {"upload_failed", "disk full", "", ""}, {}});
  EXPECT_EQ(record.state, JobState::kFailed);
  EXPECT_EQ(record.cause.kind, "upload_failed");
}

// Random reports in any order: never two live attempts, ends are final, numbers
// of events have no gap, room held is given back exactly once.
TEST(Decide, RandomHistoriesKeepTheInvariants) {
  auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int history = 0; history < 1500; ++history) {
    JobRecord record;
    record.id = JobId::New();
    record.spec.retry.max = random() % 3;
    if (random() % 2) record.spec.retry.on = {"nonzero_exit", "agent_lost"};
    record.spec.resources.spot.use = random() % 2;
    record.spec.resources.spot.fallback = random() % 2;
    std::vector<AttemptId> attempts;
    uint64_t seq = 0;
    size_t launches = 0;
    size_t releases = 0;
    auto some = [&] {
      return attempts.empty() ? AttemptId::New() : attempts[random() % attempts.size()];
    };
    for (int i = 0; i < 60; ++i) {
      JobEvent event;
      const auto host = static_cast<uint32_t>(random() % 2);
      switch (random() % 16) {
        case 0:
          event = Submitted{};
          break;
        case 1: {
          Placed placed{AttemptId::New(), {}};
          placed.hosts.resize(history % 3);
          event = placed;
          break;
        }
        case 2:
          event = Launched{some(), "h"};
          break;
        case 3:
          event = LaunchFailed{some(), {"launch_failed", "", "", ""}, random() % 4 == 0};
          break;
        case 4:
          event = AgentUp{some(), host};
          break;
        case 5:
          event = PrepareFailed{some(), {"install_failed", "", "", ""}, host};
          break;
        case 6:
          event = ScriptStarted{some(), 0, {}, host};
          break;
        case 7:
          event = ScriptEnded{
              some(),
              {},
              {random() % 2 ? CauseKind::kCompleted : CauseKind::kNonzeroExit, "", "", ""},
              host};
          break;
        case 8:
          event = Uploaded{some(), {}, {}, {}, host};
          break;
        case 9:
          event = HostLost{some(), {"agent_lost", "", "", ""}, host};
          break;
        case 11:
          event = InterruptAsked{{"preempted", "", "", ""}, "x", Millis(1)};
          break;
        case 12:
          event = Resumed{some(), "1-1", 5};
          break;
        case 13:
          event = CheckpointKept{some(), {std::to_string(i), 1, i}, {}};
          break;
        case 14:
          event = RuleFired{some(), {"nan", "nan", "loss", i}};
          break;
        case 15:
          if (random() % 8) continue;
          event = WaitedTooLong{};
          break;
        case 10:
          if (random() % 5) continue;
          event = StopAsked{{"user_stop", "", "", ""}, "x", Millis(1)};
          break;
      }
      bool was_terminal = IsTerminal(record.state);
      auto decision = Decide(record, event, {1 + i});
      if (!decision) continue;
      record = decision->record;
      if (was_terminal) {
        ASSERT_TRUE(IsTerminal(record.state));
      }
      for (const auto& stored : decision->events) ASSERT_EQ(stored.seq, ++seq);
      for (const auto& effect : decision->effects) {
        launches += effect.kind == EffectKind::kLaunch;
        releases += effect.kind == EffectKind::kRelease;
      }
      if (std::holds_alternative<Placed>(event)) attempts.push_back(record.current()->id);
      size_t live = 0;
      for (const auto& attempt : record.attempts) live += attempt.ended.ms == 0;
      ASSERT_EQ(HoldsRoom(record.state) ? 1u : 0u, launches - releases);
      ASSERT_LE(live, 1u);
    }
  }
}

}  // namespace
}  // namespace athanor
