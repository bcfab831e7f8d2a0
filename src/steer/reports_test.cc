#include "steer/reports.h"

#include "steer/engine_testing.h"

namespace athanor {
namespace {

class FakeSink final : public ReportSink {
 public:
  Result<uint64_t> TakeLog(const Reporter& from, const LogFrame& frame) override {
    if (full) return Fail(ErrorCode::kExhausted, "the disk is full");
    logs.push_back(HostNameOf(from.host) + " " + std::to_string(frame.rank) + " " + frame.bytes);
    return frame.offset + frame.bytes.size();
  }
  Status TakePoints(const Reporter& from, const PointBatch& batch) override {
    points.push_back({from.number, batch.rank});
    return Ok();
  }
  void TakeUsage(const Reporter& from, const UsageFrame&) override { used.push_back(from.host); }
  void TakeProgress(const Reporter&, const ProgressFrame&) override {}
  void TakeSupervisor(const Reporter&, uint64_t pid) override { supervisor = pid; }

  bool full = false;
  std::vector<std::string> logs;
  std::vector<std::pair<uint32_t, uint32_t>> points;
  std::vector<uint32_t> used;
  uint64_t supervisor = 0;
};

class ReportsTest : public EngineTest {
 protected:
  Reports::Answer Say(AttemptId attempt, uint32_t host, std::vector<ReportFrame> frames) {
    std::optional<Reports::Answer> answer;
    int answers = 0;
    Reports(*engine_, sink_).Take(attempt, host, std::move(frames), [&](Reports::Answer said) {
      answer = std::move(said);
      ++answers;
    });
    executor_.RunFor(Millis(100));
    EXPECT_EQ(answers, 1);
    return answer.value_or(Reports::Answer{});
  }
  // A gang of two hosts with two ranks each, with both agents up and all ranks started.
  JobId Gang() {
    JobRecord draft;
    draft.id = JobId::New();
    draft.key = draft.id.ToString();
    draft.created = executor_.clock().Wall();
    draft.spec.name = "gang";
    draft.spec.resources.cpu_millis = 1'000;
    draft.spec.resources.nodes = 2;
    draft.spec.resources.processes = 2;
    const JobId job = draft.id;
    engine_->Submit(std::move(draft), [](const auto&) {});
    executor_.RunFor(Millis(100));
    for (uint32_t host = 0; host < 2; ++host) {
      Say(Now(job), host,
          {HelloFrame{Now(job), 1, host, "10.0.0." + std::to_string(host)},
           StartedFrame{7, {}, 11 + host}});
    }
    EXPECT_EQ(Record(job).state, JobState::kRunning);
    return job;
  }
  static const StopFrame* StopIn(const Reports::Answer& answer) {
    for (const auto& frame : answer.frames) {
      if (const auto* stop = std::get_if<StopFrame>(&frame)) return stop;
    }
    return nullptr;
  }
  FakeSink sink_;
};

TEST_F(ReportsTest, EachHostReportsForItself) {
  const JobId job = Gang();
  const auto answer =
      Say(Now(job), 1,
          {UsageFrame{1'500, 187, 10, 20}, LogFrame{1, 3, LogStream::kStdout, 0, 0, "hello"},
           PointsFrame{{1, 2, 0, {}, 1}}});
  EXPECT_FALSE(answer.fenced || answer.refused);
  ASSERT_EQ(answer.frames.size(), 1u);
  EXPECT_EQ(std::get<LogAckFrame>(answer.frames[0]).length, 5u);
  EXPECT_EQ(std::get<LogAckFrame>(answer.frames[0]).rank, 3u);
  EXPECT_EQ(sink_.logs, (std::vector<std::string>{"algo-2 3 hello"}));
  EXPECT_EQ(sink_.used, std::vector<uint32_t>{1});
  const auto& hosts = Record(job).current()->hosts;
  EXPECT_EQ(hosts[0].address, "10.0.0.0");
  EXPECT_EQ(hosts[1].address, "10.0.0.1");
  EXPECT_EQ(hosts[0].held_ms, 0);
  EXPECT_EQ(hosts[1].held_ms, 1'500);
  EXPECT_EQ(hosts[1].usage.cpu_percent, 187u);
  EXPECT_EQ(Record(job).current()->held_ms, 1'500);
}

// Planted bug: believe the host in the frame instead of the one in the token.
TEST_F(ReportsTest, WhatAnotherHostWouldSayIsRefusedAndNothingOfItIsTaken) {
  const JobId job = Gang();
  const std::vector<std::vector<ReportFrame>> wrong = {
      {HelloFrame{Now(job), 1, 0}},
      {LogFrame{0, 0, LogStream::kStdout, 0, 0, "x"}},
      {LogFrame{1, 1, LogStream::kStdout, 0, 0, "x"}},
      {PointsFrame{{1, 0, 0, {}, 1}}},
      {PointsFrame{{1, 2, 0, {}, 0}}},
      {EndedFrame{{}, {"completed", "", "", ""}, {{1, 0, 0, 5}}}},
  };
  for (auto frames : wrong) {
    frames.insert(frames.begin(), LogFrame{1, 2, LogStream::kStdout, 0, 0, "taken?"});
    const auto answer = Say(Now(job), 1, frames);
    ASSERT_TRUE(answer.refused);
    EXPECT_EQ(answer.refused->code, ErrorCode::kDenied);
    EXPECT_TRUE(answer.refused->what.find("algo-") != std::string::npos) << answer.refused->what;
  }
  EXPECT_TRUE(sink_.logs.empty());
  EXPECT_TRUE(sink_.points.empty());
  EXPECT_EQ(Record(job).current()->hosts[1].exited.ms, 0);
  const auto twice = Say(Now(job), 1, {EndedFrame{{}, {"completed", "", "", ""}, {{1, 0, 0, 5}}}});
  ASSERT_TRUE(twice.refused);
  EXPECT_EQ(twice.refused->what, "algo-2 reported rank 1, which is another host's");
  EXPECT_EQ(twice.refused->why, "its ranks are 2 to 3");
}

TEST_F(ReportsTest, AHostThatTheAttemptDoesNotHaveIsRefused) {
  const JobId job = Gang();
  const auto answer = Say(Now(job), 2, {HelloFrame{Now(job), 1, 2}});
  ASSERT_TRUE(answer.refused);
  EXPECT_EQ(answer.refused->code, ErrorCode::kInvalid);
  EXPECT_EQ(answer.refused->what, "the attempt has 2 hosts, and no algo-3");
}

TEST_F(ReportsTest, TheOtherHostsOfAGangThatFellAreTold) {
  const JobId job = Gang();
  ExitInfo exit;
  exit.code = 3;
  const auto own =
      Say(Now(job), 1,
          {EndedFrame{
              exit, {"nonzero_exit", "exit status 3", "", ""}, {{3, 3, 0, 90}, {2, -1, 15, 95}}}});
  EXPECT_EQ(StopIn(own), nullptr);
  const auto other = Say(Now(job), 0, {UsageFrame{5}});
  const auto* stop = StopIn(other);
  ASSERT_NE(stop, nullptr);
  EXPECT_EQ(stop->cause.kind, "peer_failed");
  EXPECT_EQ(stop->cause.text, "algo-2 (rank 3) ended first: exit status 3");
  EXPECT_EQ(stop->grace_ms, 30'000);
  EXPECT_FALSE(stop->interrupt);
}

TEST_F(ReportsTest, AStopHoldsForAllHosts) {
  const JobId job = Gang();
  Apply(job, StopAsked{{"user_stop", "stopped by ann", "", ""}, "ann", Millis(4'000)});
  for (uint32_t host = 0; host < 2; ++host) {
    const auto answer = Say(Now(job), host, {UsageFrame{5}});
    const auto* stop = StopIn(answer);
    ASSERT_NE(stop, nullptr);
    EXPECT_EQ(stop->cause.kind, "user_stop");
    EXPECT_EQ(stop->grace_ms, 4'000);
  }
}

TEST_F(ReportsTest, OfAnAttemptThatIsOverIsFenced) {
  const JobId job = Gang();
  const auto attempt = Now(job);
  for (uint32_t host = 0; host < 2; ++host) {
    Apply(job, HostLost{attempt, {"agent_lost", "gone", "", ""}, host});
  }
  EXPECT_TRUE(Say(attempt, 0, {HelloFrame{attempt, 1, 0}}).fenced);
  EXPECT_TRUE(Say(AttemptId::New(), 0, {UsageFrame{5}}).fenced);
}

TEST_F(ReportsTest, WhatCouldNotBeStoredIsNotAcknowledged) {
  const JobId job = Gang();
  sink_.full = true;
  const auto answer =
      Say(Now(job), 0, {HelloFrame{Now(job), 2, 0}, LogFrame{0, 0, LogStream::kStdout, 0, 0, "x"}});
  ASSERT_TRUE(answer.refused);
  EXPECT_EQ(answer.refused->code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace athanor
