#include "door/native/hosts_view.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr WallTime kNow{1'000'000};

Attempt TwoHosts() {
  Attempt attempt;
  attempt.hosts.resize(2);
  for (uint32_t i = 0; i < 2; ++i) {
    attempt.hosts[i].name = HostNameOf(i);
    attempt.hosts[i].up = attempt.hosts[i].last_seen = kNow;
    attempt.hosts[i].started = WallTime{kNow.ms - 5'000};
  }
  return attempt;
}

TEST(HostState, FollowsAHostFromItsStartToItsEnd) {
  Attempt attempt;
  Host host;
  EXPECT_EQ(HostState(attempt, host, kNow), "Starting");
  host.up = host.last_seen = kNow;
  EXPECT_EQ(HostState(attempt, host, kNow), "Preparing");
  host.started = kNow;
  EXPECT_EQ(HostState(attempt, host, kNow), "Running");
  EXPECT_EQ(HostState(attempt, host, WallTime{kNow.ms + 60'000}), "Unknown");
  host.exited = kNow;
  host.exit.emplace().code = 0;
  EXPECT_EQ(HostState(attempt, host, kNow), "Uploading");
  host.over = kNow;
  EXPECT_EQ(HostState(attempt, host, kNow), "Ended");
}

TEST(HostState, AHostWhoseRanksWereNotSeenToEndWasLost) {
  Attempt attempt = TwoHosts();
  attempt.hosts[1].over = kNow;
  EXPECT_EQ(HostState(attempt, attempt.hosts[1], kNow), "Lost");
  attempt.hosts[1].started = {};
  EXPECT_EQ(HostState(attempt, attempt.hosts[1], kNow), "Ended");
}

TEST(FallOrder, NamesTheFirstRankAndWhatBecameOfTheOthers) {
  Attempt attempt = TwoHosts();
  attempt.hosts[0].ranks = {{0, -1, 15, 3'200}, {1, -1, 15, 3'300}};
  attempt.hosts[1].ranks = {{3, 1, 0, 3'000}, {2, 143, 0, 3'100}};
  attempt.fell =
      FirstFall{1, 3, WallTime{kNow.ms - 2'000}, {"nonzero_exit", "exit status 1", "", ""}};
  EXPECT_EQ(FallOrder(attempt),
            (std::vector<std::string>{"rank 3 on algo-2 failed first: exit 1",
                                      "then rank 2 on algo-2 was stopped by signal 15",
                                      "then ranks 0 and 1 on algo-1 were stopped by signal 15"}));
}

TEST(FallOrder, ALostHostFellAsAWhole) {
  Attempt attempt = TwoHosts();
  attempt.hosts[0].ranks = {{0, 3, 0, 3'000}};
  attempt.fell = FirstFall{1, std::nullopt, kNow, {"agent_lost", "its agent is gone", "", ""}};
  EXPECT_EQ(FallOrder(attempt),
            (std::vector<std::string>{"algo-2 failed first: its agent is gone",
                                      "then rank 0 on algo-1 ended with exit 3"}));
}

TEST(FallOrder, LeavesOutRanksThatWereThroughBefore) {
  Attempt attempt = TwoHosts();
  attempt.hosts[0].ranks = {{0, 0, 0, 1'000}};
  attempt.hosts[1].ranks = {{1, 1, 0, 3'000}};
  attempt.fell = FirstFall{1, 1, WallTime{kNow.ms - 2'000}, {}};
  EXPECT_EQ(FallOrder(attempt), std::vector<std::string>{"rank 1 on algo-2 failed first: exit 1"});
  attempt.fell.reset();
  EXPECT_TRUE(FallOrder(attempt).empty());
}

TEST(FallOrder, StaysShortWithManyRanks) {
  Attempt attempt;
  attempt.hosts.resize(40);
  for (uint32_t i = 0; i < 40; ++i) attempt.hosts[i].ranks = {{i, -1, 15, i * 10}};
  attempt.fell = FirstFall{0, 0, {}, {}};
  const auto steps = FallOrder(attempt);
  ASSERT_EQ(steps.size(), 9u);
  EXPECT_EQ(steps.back(), "then 32 more");
}

TEST(HostRanks, SayHowEachRankOfAHostEnded) {
  JobSpec spec;
  spec.resources.processes = 2;
  Attempt attempt = TwoHosts();
  attempt.hosts[1].ranks = {{3, 1, 0, 3'000}, {2, -1, 15, 3'100}};
  attempt.fell = FirstFall{1, 3, {}, {}};
  EXPECT_EQ(HostRanks(spec, attempt, 0), "0 and 1");
  EXPECT_EQ(HostRanks(spec, attempt, 1), "2 signal 15, 3 exit 1 (failed first)");
}

TEST(HostRanks, AreShortEvenIfThereAreMany) {
  JobSpec spec;
  spec.resources.processes = 8;
  Attempt attempt = TwoHosts();
  EXPECT_EQ(HostRanks(spec, attempt, 0), "0 to 7");
  attempt.hosts[1].ranks = {{8, 0, 0, 1}, {9, 0, 0, 1}, {12, 0, 0, 1}};
  EXPECT_EQ(HostRanks(spec, attempt, 1), "8 and 9 exit 0, 10 and 11, 12 exit 0, 13 to 15");
}

TEST(IsGang, IsAboutMoreThanOneHostOrRank) {
  JobRecord record;
  EXPECT_FALSE(IsGang(record));
  record.attempts.emplace_back().hosts.resize(1);
  EXPECT_FALSE(IsGang(record));
  record.spec.resources.processes = 2;
  EXPECT_TRUE(IsGang(record));
  record.spec.resources.processes = 1;
  record.spec.resources.nodes = 2;
  EXPECT_TRUE(IsGang(record));
}

// Planted bug: show the first that a time limit ended as a failure.
TEST(HostsView, WhatATimeLimitEndedDidNotFail) {
  Attempt attempt = TwoHosts();
  attempt.hosts[0].ranks = {{0, -1, 15, 3'000}};
  attempt.fell = FirstFall{0, 0, kNow, {CauseKind::kTimeLimit, "ran longer than its limit"}};
  EXPECT_EQ(FirstFailure(attempt), nullptr);
  EXPECT_TRUE(FallOrder(attempt).empty());
}

TEST(HostsView, AHostOfWhichNothingIsLeftWasLost) {
  Attempt attempt;
  Host host;
  host.started = host.exited = host.over = kNow;
  host.exit = ExitInfo{};
  EXPECT_EQ(HostState(attempt, host, kNow), "Lost");
  host.exit->code = 0;
  EXPECT_EQ(HostState(attempt, host, kNow), "Ended");
}

}  // namespace
}  // namespace athanor
