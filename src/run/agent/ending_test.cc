#include "run/agent/ending.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr char kTraceback[] =
    "Traceback (most recent call last):\n"
    "  File \"/opt/ml/code/train.py\", line 3, in <module>\n"
    "    raise ValueError(\"rank went wrong\")\n"
    "ValueError: rank went wrong\n";

AttemptPlan PlanOf(uint32_t host, uint32_t hosts, uint32_t processes) {
  AttemptPlan plan;
  plan.host = host;
  plan.spec.name = "many";
  plan.spec.resources.nodes = hosts;
  plan.spec.resources.processes = processes;
  for (uint32_t i = 0; i < hosts; ++i) plan.peers.push_back({HostNameOf(i), ""});
  return plan;
}

RankExit Ended(int64_t code, int64_t order, int64_t signal = 0) {
  RankExit rank;
  rank.exit_code = signal != 0 ? 128 + signal : code;
  rank.signal = signal;
  rank.wall_ms = 100 * order;
  rank.ended = order;
  return rank;
}

// Local rank 1 fell; the other was asked to stop.
ExitRecord SecondFell() {
  ExitRecord record;
  record.ranks = {Ended(0, 2, 15), Ended(1, 1)};
  record.first_failed_rank = 1;
  return record;
}

TEST(Ending, NamesTheRankThatFellAndItsHost) {
  const auto plan = PlanOf(1, 2, 2);
  Ending ending;
  ending.plan = &plan;
  ending.record = SecondFell();
  ending.stderr_tail = kTraceback;
  const auto [exit, cause] = Explain(ending);
  EXPECT_EQ(exit.first_rank, 3u);
  EXPECT_EQ(exit.code, 1);
  EXPECT_EQ(cause.kind, "python_exception");
  EXPECT_EQ(cause.text.rfind("rank 3 on algo-2: ", 0), 0u) << cause.text;
}

TEST(Ending, ALoneRankIsNotNamed) {
  const auto plan = PlanOf(0, 1, 1);
  Ending ending;
  ending.plan = &plan;
  ending.record.emplace();
  ending.record->ranks = {Ended(1, 1)};
  ending.record->first_failed_rank = 0;
  ending.stderr_tail = kTraceback;
  EXPECT_EQ(Explain(ending).second.text.find("rank 0"), std::string::npos);
}

// A rank that ends because another host fell is no reason of its own.
TEST(Ending, AHostThatWasToldToStopSaysSo) {
  const auto plan = PlanOf(1, 2, 2);
  Ending ending;
  ending.plan = &plan;
  ending.record = SecondFell();
  ending.stop = StopFrame{{"peer_failed", "stopped: rank 0 on algo-1 fell", "", ""}, 30'000};
  const auto cause = Explain(ending).second;
  EXPECT_EQ(cause.kind, "peer_failed");
  EXPECT_EQ(cause.text.rfind("stopped: rank 0 on algo-1 fell", 0), 0u) << cause.text;
}

// Planted bug: the stop explaining whatever ended before it came.
TEST(Ending, ARankThatFellBeforeTheStopOfItsHostIsStillTheReason) {
  const auto plan = PlanOf(1, 2, 2);
  Ending ending;
  ending.plan = &plan;
  ending.record = SecondFell();
  ending.record->fell_by_itself = true;
  ending.record->stop_signal = 15;
  ending.record->stop_to_end_ms = 10;
  ending.stderr_tail = kTraceback;
  ending.stop = StopFrame{{"peer_failed", "stopped: rank 0 on algo-1 fell", "", ""}, 30'000};
  const auto [exit, cause] = Explain(ending);
  EXPECT_EQ(cause.kind, "python_exception");
  EXPECT_EQ(cause.text.rfind("rank 3 on algo-2: ", 0), 0u) << cause.text;
  ending.stop->cause.kind = "user_stop";
  EXPECT_EQ(Explain(ending).second.kind, "user_stop");
}

TEST(Ending, ARankThatLostAnotherIsToldFromOneThatFailed) {
  const auto plan = PlanOf(1, 2, 2);
  Ending ending;
  ending.plan = &plan;
  ending.record = SecondFell();
  ending.stderr_tail = kTraceback;
  EXPECT_FALSE(LostAnotherRank(Explain(ending).second));
  for (const std::string words :
       {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by "
        "peer [10.213.0.2]:4711",
        "ConnectionResetError: [Errno 104] Connection reset by peer"}) {
    ending.stderr_tail = std::string(kTraceback, std::string_view(kTraceback).rfind("ValueError"));
    ending.stderr_tail += words + "\n";
    const auto cause = Explain(ending).second;
    EXPECT_TRUE(LostAnotherRank(cause)) << cause.kind << ": " << cause.text;
  }
}

TEST(Ending, RanksAreListedInTheOrderOfTheirEnd) {
  ExitRecord record;
  record.ranks = {Ended(0, 3), Ended(0, 1, 9), Ended(7, 2)};
  record.ranks.emplace_back();  // never ran
  EXPECT_EQ(EndsOf(record, 4),
            (std::vector<RankEnd>{{5, -1, 9, 100}, {6, 7, 0, 200}, {4, 0, 0, 300}}));
}

TEST(Ending, WithoutARecordTheFirstRankIsLookedAt) {
  EXPECT_EQ(FirstFallen(std::nullopt), 0u);
  EXPECT_EQ(FirstFallen(ExitRecord()), 0u);
  EXPECT_EQ(FirstFallen(SecondFell()), 1u);
}

}  // namespace
}  // namespace athanor
