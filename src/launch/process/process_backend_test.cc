#include "launch/process/process_backend.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "job/host_folder.h"
#include "launch/backend_conformance.h"
#include "launch/process/process_case.h"

namespace athanor {
namespace {

// Every attempt finds an agent that waits for one.
class SpareCase : public ProcessCase {
 public:
  LaunchPlan NewPlan(size_t hosts) {
    AwaitSpare();
    return ProcessCase::NewPlan(hosts);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Process, BackendConformance, ProcessCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Spare, BackendConformance, SpareCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Process, GangConformance, ProcessCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Spare, GangConformance, SpareCase);

// Planted bug: Launch making every folder that is missing.
TEST(ProcessBackend, AHostThatWasLostIsNotStartedAgain) {
  ProcessCase server;
  const auto plan = server.NewPlan(3);
  const auto handle = server.backend().Launch(plan);
  ASSERT_TRUE(handle);
  for (const auto& host : plan.hosts) server.AwaitScript(host);
  for (size_t lost : {2u, 0u}) {
    server.KillAgent(plan.hosts[lost]);
    ASSERT_TRUE(RemoveTree(server.PathOf(plan.hosts[lost])));
    EXPECT_EQ(server.backend().Launch(plan), *handle);
    EXPECT_EQ(server.ScriptStarts(plan.hosts[lost]), 1);
    const auto hosts = server.backend().Poll({*handle}).front();
    ASSERT_TRUE(hosts);
    ASSERT_EQ(hosts->size(), 3u);
    EXPECT_EQ((*hosts)[lost].state, HostStatus::State::kGone);
    EXPECT_EQ((*hosts)[1].state, HostStatus::State::kAlive);
  }
  EXPECT_TRUE(server.backend().Release(*handle));
  EXPECT_FALSE(server.ScriptRuns(plan.hosts[1]));
}

// Planted bug: start an agent for every host without one. It would report the end again, later.
TEST(ProcessBackend, AHostOfWhichNothingMoreIsExpectedGetsNoAgent) {
  ProcessCase server;
  auto plan = server.NewPlan(2);
  const auto handle = server.backend().Launch(plan);
  ASSERT_TRUE(handle);
  for (const auto& host : plan.hosts) server.AwaitScript(host);
  for (const auto& host : plan.hosts) server.KillAgent(host);
  plan.over = {true, false};
  EXPECT_EQ(server.backend().Launch(plan), *handle);
  const auto hosts = server.backend().Poll({*handle}).front();
  ASSERT_TRUE(hosts);
  EXPECT_EQ((*hosts)[0].state, HostStatus::State::kAgentGone);
  EXPECT_TRUE(server.backend().Release(*handle));
}

TEST(SpareAgent, IsGivenTheAttemptAndReplaced) {
  ProcessCase server;
  for (int i = 0; i < 2; ++i) {
    const auto spare = server.AwaitSpare();
    const auto plan = server.NewPlan(1).hosts.front();
    ASSERT_TRUE(server.backend().Launch({{plan}}));
    server.AwaitScript(plan);
    EXPECT_EQ(server.AgentOf(plan), spare);
  }
}

// Of a group of processes, whether one still runs, or still has its files open.
bool GroupRuns(pid_t group) {
  const auto names = ListDir("/proc").value();
  for (const auto& name : names) {
    if (name[0] < '0' || name[0] > '9') continue;
    const auto stat = ReadFile("/proc/" + name + "/stat");
    const size_t end = stat ? stat->rfind(')') : std::string::npos;
    if (end == std::string::npos) continue;
    char state = 0;
    int parent = 0, own_group = 0;
    if (std::sscanf(stat->c_str() + end + 1, " %c %d %d", &state, &parent, &own_group) != 3)
      continue;
    if (own_group == group && state != 'Z' && state != 'X') return true;
  }
  return false;
}

TEST(SpareAgent, OneThatDiedIsNotWaitedFor) {
  ProcessCase server;
  const auto spare = server.AwaitSpare();
  ::kill(-spare.pid, SIGKILL);  // and what it reads with, which holds the socket, too
  while (IsAlive(spare) || GroupRuns(spare.pid)) ::usleep(1'000);
  const auto plan = server.NewPlan(1).hosts.front();
  ASSERT_TRUE(server.backend().Launch({{plan}}));
  server.AwaitScript(plan);
  EXPECT_EQ(server.ScriptStarts(plan), 1);
}

TEST(SpareAgent, EndsWithItsServer) {
  ProcessCase server;
  const auto spare = server.AwaitSpare();
  server.EndServer();
  while (IsAlive(spare)) ::usleep(1'000);
}

TEST(ProcessBackend, AHandleThatIsNoAttemptNeverBecomesAPath) {
  TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "precious"));
  ProcessBackend backend({dir / "attempts", "/nonexistent"});
  EXPECT_EQ(backend.Release("../precious").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(backend.Poll({"../precious"}).front().error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(Exists(dir / "precious"));
}

TEST(ProcessBackend, WhatCannotBeEndedIsNotForgotten) {
  TestDir dir;
  AttemptPlan plan;
  plan.attempt = AttemptId::New();
  const auto folder = dir / plan.attempt.ToString();
  ASSERT_TRUE(MakeDirs(folder));
  ASSERT_TRUE(WriteFileAtomic(folder + "/supervisor.status", "1\n", 0600));
  ProcessBackend backend({dir.path(), "/bin/false"});
  EXPECT_EQ(backend.Release(plan.attempt.ToString()).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(Exists(folder));
  // With an exit record the script is over, whatever else is missing.
  ASSERT_TRUE(WriteFileAtomic(folder + "/exit", "", 0600));
  EXPECT_TRUE(backend.Release(plan.attempt.ToString()));
  EXPECT_FALSE(Exists(folder));
}

}  // namespace
}  // namespace athanor
