// What Decide makes of an attempt with several hosts.
#include <gtest/gtest.h>

#include <algorithm>

#include "steer/decide.h"

namespace athanor {
namespace {

const Cause kDone{"completed", "done", "", ""};
const Cause kFailed{"nonzero_exit", "exit status 3", "", ""};
const Cause kPeer{CauseKind::kPeerFailed, "algo-2 ended first", "", ""};

class GangTest : public testing::Test {
 protected:
  explicit GangTest(uint32_t nodes = 3) {
    record_.id = JobId::New();
    record_.spec.name = "gang";
    record_.spec.resources.nodes = nodes;
    record_.spec.resources.processes = 2;
    Do(Submitted{});
    Placement each;
    each.cpu_millis = 500;
    Placement all;
    all.cpu_millis = 500 * nodes;
    Placed placed{id_, all};
    placed.hosts.assign(nodes, each);
    Do(placed);
    Do(Launched{id_, "handle"});
  }

  Outcome Do(const JobEvent& event) {
    auto decided = Decide(record_, event, {now_ += 10});
    EXPECT_TRUE(decided) << decided.error().what;
    if (!decided) return {};
    record_ = decided->record;
    return *decided;
  }
  ErrorCode Refused(const JobEvent& event) {
    const auto decided = Decide(record_, event, {now_});
    EXPECT_FALSE(decided);
    return decided ? ErrorCode::kBug : decided.error().code;
  }
  void Run() {
    for (uint32_t host = 0; host < hosts().size(); ++host) Do(AgentUp{id_, host});
    for (uint32_t host = 0; host < hosts().size(); ++host) Do(ScriptStarted{id_, 5, {}, host});
  }
  Outcome End(uint32_t host, const Cause& cause, std::vector<RankEnd> ranks = {}) {
    ExitInfo exit;
    exit.code = cause.kind == "completed" ? 0 : 3;
    return Do(ScriptEnded{id_, exit, cause, host, std::move(ranks)});
  }
  static bool Stops(const Outcome& outcome) {
    return std::ranges::any_of(
        outcome.effects, [](const Effect& effect) { return effect.kind == EffectKind::kStop; });
  }
  const std::vector<Host>& hosts() const { return record_.current()->hosts; }
  const Attempt& attempt() const { return *record_.current(); }

  const AttemptId id_ = AttemptId::New();
  JobRecord record_;
  int64_t now_ = 1'000;
};

TEST_F(GangTest, TheJobGoesAsFarAsItsHostsTogether) {
  ASSERT_EQ(hosts().size(), 3u);
  EXPECT_EQ(hosts()[2].name, "algo-3");
  EXPECT_EQ(hosts()[2].placement.cpu_millis, 500u);
  EXPECT_EQ(hosts()[2].handle, "handle");
  Do(AgentUp{id_, 1, "10.0.0.2"});
  EXPECT_EQ(record_.state, JobState::kPreparing);
  EXPECT_EQ(hosts()[1].address, "10.0.0.2");
  Do(ScriptStarted{id_, 5, {}, 1});
  EXPECT_EQ(record_.state, JobState::kRunning);
  for (const uint32_t host : {0u, 2u}) {
    Do(AgentUp{id_, host});
    Do(ScriptStarted{id_, 9, {"mounts"}, host});
  }
  EXPECT_EQ(attempt().setup_ms, 9);
  EXPECT_EQ(attempt().off, (std::vector<std::string>{"mounts"}));
  End(0, kDone);
  Do(Uploaded{id_, {{"model.tar.gz", "a", 1, 1}}, {}, "pip", 0});
  End(1, kDone);
  EXPECT_EQ(record_.state, JobState::kRunning);
  End(2, kDone);
  EXPECT_EQ(record_.state, JobState::kUploading);
  Do(Uploaded{id_, {}, {}, "", 1});
  EXPECT_EQ(record_.state, JobState::kUploading);
  const auto last = Do(Uploaded{id_, {{"model.tar.gz", "b", 1, 1}}, {}, "", 2});
  EXPECT_EQ(record_.state, JobState::kCompleted);
  EXPECT_EQ(record_.cause.kind, "completed");
  ASSERT_EQ(last.effects.size(), 1u);
  EXPECT_EQ(last.effects[0].kind, EffectKind::kRelease);
  ASSERT_EQ(record_.outputs.size(), 2u);
  EXPECT_EQ(record_.outputs[0].name, "model.tar.gz");
  EXPECT_EQ(record_.outputs[1].name, "algo-3/model.tar.gz");
  EXPECT_EQ(record_.packages, "pip");
  EXPECT_FALSE(attempt().fell);
}

// Planted bug: let the last host to end decide.
TEST_F(GangTest, TheFirstRankThatFallsDecidesAndIsNamedWithItsHost) {
  Run();
  End(0, kDone);
  EXPECT_FALSE(attempt().fell) << "a rank that ends early and well is no fall";
  const auto fall = End(1, kFailed, {{3, 3, 0, 50}, {2, -1, 15, 60}});
  EXPECT_TRUE(Stops(fall));
  EXPECT_EQ(record_.state, JobState::kRunning);
  ASSERT_TRUE(attempt().fell);
  EXPECT_EQ(attempt().fell->host, 1u);
  EXPECT_EQ(attempt().fell->rank, 3u);
  EXPECT_EQ(attempt().fell->at.ms, now_);
  const auto fell = attempt().fell;
  EXPECT_FALSE(Stops(End(2, {"python_exception", "broken pipe", "", ""}, {{4, 1, 0, 70}})));
  for (uint32_t host = 0; host < 3; ++host) Do(Uploaded{id_, {}, {}, "", host});
  EXPECT_EQ(attempt().fell, fell);
  EXPECT_EQ(record_.state, JobState::kFailed);
  EXPECT_EQ(record_.cause, kFailed);
  EXPECT_EQ(attempt().exit->first_rank, 3u);
}

TEST_F(GangTest, APeerThatIsStoppedForAnothersFallDoesNotHideIt) {
  Run();
  End(1, kFailed);
  EXPECT_EQ(attempt().fell->rank, 2u) << "its first, if it does not say which";
  End(0, kPeer);
  End(2, kPeer);
  for (uint32_t host = 0; host < 3; ++host) Do(Uploaded{id_, {}, {}, "", host});
  EXPECT_EQ(record_.cause, kFailed);
}

TEST_F(GangTest, AHostThatCannotBePreparedStopsTheOthers) {
  for (uint32_t host = 0; host < 3; ++host) Do(AgentUp{id_, host});
  const Cause broken{"install_failed", "no such package", "", ""};
  EXPECT_TRUE(Stops(Do(PrepareFailed{id_, broken, 2})));
  EXPECT_EQ(record_.state, JobState::kPreparing);
  EXPECT_EQ(attempt().fell->rank, std::nullopt);
  Do(PrepareFailed{id_, kPeer, 0});
  Do(PrepareFailed{id_, kPeer, 1});
  EXPECT_EQ(record_.state, JobState::kFailed);
  EXPECT_EQ(record_.cause.kind, broken.kind);
  EXPECT_EQ(record_.cause.text, "algo-3: no such package");
}

TEST_F(GangTest, AHostThatIsLostWhileAnotherUploadsEndsTheAttempt) {
  Run();
  record_.spec.retry.max = 1;
  End(0, kDone);
  End(1, kDone);
  Do(Uploaded{id_, {}, {}, "", 0});
  const Cause lost{"agent_lost", "gone", "", ""};
  Do(HostLost{id_, lost, 2});
  EXPECT_EQ(record_.state, JobState::kUploading);
  Do(Uploaded{id_, {}, {}, "", 1});
  EXPECT_EQ(record_.state, JobState::kQueued) << "a machine was lost: another attempt";
  EXPECT_EQ(attempt().cause.kind, lost.kind);
  EXPECT_EQ(attempt().cause.text, "algo-3: gone");
}

// Planted bug: keep what an event tells as the reason. `ath why` would say "algo-3" of a job that
// runs.
TEST_F(GangTest, ThatAHostCameUpIsNoReason) {
  Run();
  EXPECT_EQ(record_.cause, Cause{});
  End(1, kFailed);
  EXPECT_EQ(record_.cause.text, "algo-2: exit status 3; the other hosts are being stopped");
}

TEST_F(GangTest, OfAHostThatIsGoneNobodyKnowsWhichRankWasFirst) {
  Run();
  End(1, {CauseKind::kAgentLost, "agent and script are gone"});
  ASSERT_TRUE(attempt().fell);
  EXPECT_EQ(attempt().fell->rank, std::nullopt);
  EXPECT_EQ(attempt().cause.text, "algo-2: agent and script are gone");
}

// Planted bug: let an interruption replace any cause. It would also give a retry for nothing.
TEST_F(GangTest, AnInterruptionDoesNotHideWhatFailedBefore) {
  Run();
  End(1, kFailed);
  Do(InterruptAsked{{"preempted", "taken away", "", ""}, "ann", Millis(10)});
  End(0, kPeer);
  End(2, kPeer);
  for (uint32_t host = 0; host < 3; ++host) Do(Uploaded{id_, {}, {}, "", host});
  EXPECT_EQ(record_.state, JobState::kFailed);
  EXPECT_EQ(record_.cause.kind, kFailed.kind);
}

// Planted bug: one wait for all hosts. The second to wait would be forgotten, and the first to go
// on would end it for both.
TEST_F(GangTest, EachHostWaitsForItsOwnDisk) {
  Run();
  const Cause full{CauseKind::kWaitingDisk, "the disk is full"};
  const Cause room{CauseKind::kDiskRoom, "there is room again"};
  Do(Noted{id_, full, 0});
  Do(Noted{id_, full, 2});
  EXPECT_TRUE(Do(Noted{id_, full, 2}).events.empty()) << "said twice";
  EXPECT_EQ(record_.cause.text, "algo-1: the disk is full");
  Do(Noted{id_, room, 0});
  EXPECT_EQ(record_.cause.text, "algo-3: the disk is full");
  Do(Noted{id_, room, 2});
  EXPECT_EQ(record_.cause, Cause{});
}

TEST_F(GangTest, AStopOfAllIsNobodysFall) {
  Run();
  Do(StopAsked{{"user_stop", "stopped by ann", "", ""}, "ann", Millis(10)});
  for (uint32_t host = 0; host < 3; ++host) End(host, {"signal", "SIGTERM", "", ""});
  for (uint32_t host = 0; host < 3; ++host) Do(Uploaded{id_, {}, {}, "", host});
  EXPECT_FALSE(attempt().fell);
  EXPECT_EQ(record_.state, JobState::kStopped);
  EXPECT_EQ(record_.cause.kind, "user_stop");
}

TEST_F(GangTest, AnInterruptionThatAllSurviveIsOneOfTheWholeAttempt) {
  Run();
  Do(InterruptAsked{{"preempted", "taken away", "", ""}, "ann", Millis(10)});
  for (uint32_t host = 0; host < 3; ++host) {
    ExitInfo exit;
    exit.code = 0;
    exit.notice_ms = 5 + host;
    exit.saved_ms = host == 0 ? 4 : -1;
    Do(ScriptEnded{id_, exit, kDone, host, {}});
  }
  for (uint32_t host = 0; host < 3; ++host) Do(Uploaded{id_, {}, {}, "", host});
  EXPECT_EQ(record_.state, JobState::kQueued);
  EXPECT_EQ(attempt().cause.kind, "preempted");
  EXPECT_EQ(attempt().exit->notice_ms, 7);
  EXPECT_EQ(attempt().exit->saved_ms, 4);
}

TEST_F(GangTest, WhatIsSaidTwiceIsKnown) {
  Run();
  End(1, kFailed);
  const auto once = record_;
  for (const JobEvent& again :
       std::vector<JobEvent>{AgentUp{id_, 1}, ScriptStarted{id_, 5, {}, 1},
                             PrepareFailed{id_, kDone, 1}, ScriptEnded{id_, {}, kDone, 1, {}}}) {
    const auto outcome = Do(again);
    EXPECT_TRUE(outcome.events.empty());
    EXPECT_TRUE(outcome.effects.empty());
    EXPECT_EQ(hosts()[1].cause, once.current()->hosts[1].cause);
  }
  Do(Uploaded{id_, {}, {}, "", 1});
  EXPECT_TRUE(Do(Uploaded{id_, {}, {}, "", 1}).events.empty());
  EXPECT_TRUE(Do(HostLost{id_, {"agent_lost", "", "", ""}, 1}).events.empty());
}

TEST_F(GangTest, AHostThatItDoesNotHaveIsRefused) {
  Run();
  for (const JobEvent& event :
       std::vector<JobEvent>{AgentUp{id_, 3}, ScriptStarted{id_, 5, {}, 3},
                             PrepareFailed{id_, kDone, 7}, ScriptEnded{id_, {}, kDone, 3, {}},
                             Uploaded{id_, {}, {}, "", 3}, HostLost{id_, kDone, 3}}) {
    EXPECT_EQ(Refused(event), ErrorCode::kInvalid) << NameOf(event);
  }
}

TEST_F(GangTest, AHostThatWasGivenUpBeforeItCameUpIsFencedOff) {
  Do(AgentUp{id_, 0});
  Do(HostLost{id_, {"host_missing", "", "", ""}, 1});
  EXPECT_EQ(Refused(AgentUp{id_, 1}), ErrorCode::kConflict);
}

}  // namespace
}  // namespace athanor
