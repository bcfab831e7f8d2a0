// Several ranks under one supervisor.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/text/text.h"
#include "run/supervisor/process_tree.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using test::TestAttempt;

TestAttempt& WithRanks(TestAttempt& attempt, size_t ranks) {
  while (attempt.plan.ranks.size() < ranks) attempt.AddRank();
  return attempt;
}

const std::string kSaysItsPid = "echo $$ >new$RANK; mv new$RANK pid$RANK; ";

// Goes on when that rank was reaped.
std::string AfterTheEndOf(int rank) {
  const auto file = "pid" + std::to_string(rank);
  return "while [ ! -e " + file + " ] || kill -0 $(cat " + file +
         ") 2>/dev/null; do sleep 0.01; done; ";
}

TEST(Ranks, EachHasItsOwnStreamsAndSession) {
  TestAttempt attempt;
  WithRanks(attempt, 3);
  for (size_t i = 0; i < 3; ++i) {
    attempt.Shell("echo out $RANK; echo err $RANK >&2; cut -d' ' -f6 /proc/self/stat", i);
  }
  const auto record = attempt.Run();
  std::set<std::string> sessions;
  for (size_t i = 0; i < 3; ++i) {
    const auto n = std::to_string(i);
    EXPECT_EQ(attempt.err(i), "err " + n + "\n");
    ASSERT_EQ(attempt.out(i).rfind("out " + n + "\n", 0), 0u) << attempt.out(i);
    sessions.insert(attempt.out(i).substr(6));
  }
  EXPECT_EQ(sessions.size(), 3u);
  EXPECT_EQ(record.ranks[0].exit_code, 0);
}

// Planted bug: the order of the plan instead of the order of the ends.
TEST(Ranks, TheRecordSaysInWhichOrderTheyEnded) {
  TestAttempt attempt;
  WithRanks(attempt, 3);
  attempt.Shell(AfterTheEndOf(1), 0);
  attempt.Shell(kSaysItsPid + AfterTheEndOf(2), 1);
  attempt.Shell(kSaysItsPid, 2);
  const auto record = attempt.Run();
  EXPECT_EQ(record.ranks[2].ended, 1);
  EXPECT_EQ(record.ranks[1].ended, 2);
  EXPECT_EQ(record.ranks[0].ended, 3);
  EXPECT_EQ(record.first_failed_rank, -1);
}

TEST(Ranks, TheFirstToFallIsNamedAndTheOthersAreStopped) {
  TestAttempt attempt;
  WithRanks(attempt, 3);
  attempt.Shell("exec sleep 1000", 0);
  attempt.Shell("exit 9", 1);
  attempt.Shell("exec sleep 1000", 2);
  const auto record = attempt.Run();
  EXPECT_EQ(record.first_failed_rank, 1);
  EXPECT_TRUE(record.fell_by_itself);
  EXPECT_EQ(record.ranks[1].exit_code, 9);
  EXPECT_EQ(record.ranks[1].ended, 1);
  EXPECT_EQ(record.ranks[0].signal, SIGTERM);
  EXPECT_EQ(record.ranks[2].signal, SIGTERM);
  EXPECT_EQ(record.ranks[0].ended + record.ranks[2].ended, 5);
}

TEST(Ranks, OneThatFallsBecauseOfAStopDidNotFallByItself) {
  TestAttempt attempt;
  WithRanks(attempt, 2);
  for (size_t i = 0; i < 2; ++i) attempt.Shell("echo up; exec sleep 1000", i);
  attempt.Launch();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(test::Eventually([&] { return !attempt.out(i).empty(); }));
  }
  EXPECT_TRUE(AskToStop(attempt.pidfd()).ok());
  attempt.WaitForEnd();
  EXPECT_GE(attempt.record().first_failed_rank, 0);
  EXPECT_FALSE(attempt.record().fell_by_itself);
}

TEST(Ranks, OneThatEndsEarlyWithStatusZeroStopsNobody) {
  TestAttempt attempt;
  WithRanks(attempt, 2);
  attempt.Shell(kSaysItsPid, 0);
  attempt.Shell(AfterTheEndOf(0) + "echo done", 1);
  const auto record = attempt.Run();
  EXPECT_EQ(attempt.out(1), "done\n");
  EXPECT_EQ(record.ranks[1].exit_code, 0);
  EXPECT_EQ(record.first_failed_rank, -1);
}

TEST(Ranks, AllAreStartedBeforeTheSupervisorSaysReady) {
  TestAttempt attempt;
  WithRanks(attempt, 4);
  for (size_t i = 0; i < 4; ++i) attempt.Shell("date +%s%N; exec sleep 1000", i);
  attempt.Launch();
  EXPECT_EQ(attempt.ready(), "S");
  const auto started = attempt.started();
  std::set<int64_t> pids;
  for (const auto& rank : started.ranks) {
    EXPECT_EQ(rank.spawn_errno, 0);
    pids.insert(rank.outer_pid);
  }
  EXPECT_EQ(pids.size(), 4u);
  EXPECT_FALSE(pids.contains(0));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(test::Eventually([&] { return EndsWith(attempt.out(i), "\n"); }));
  }
  // Measured, not judged: how far their first lines are apart.
  std::vector<long long> first_lines;
  for (size_t i = 0; i < 4; ++i) first_lines.push_back(std::atoll(attempt.out(i).c_str()));
  const auto [low, high] = std::minmax_element(first_lines.begin(), first_lines.end());
  std::printf("first lines of 4 ranks: %.1f ms apart\n", static_cast<double>(*high - *low) / 1e6);
  EXPECT_TRUE(KillAllNow(attempt.pidfd()).ok());
  attempt.WaitForEnd();
  EXPECT_EQ(attempt.record().ranks.size(), 4u);
}

}  // namespace
}  // namespace athanor
