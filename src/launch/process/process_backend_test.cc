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

namespace athanor {
namespace {

// Replaces `athanor agent`: it takes the lock, starts the script once, and names it in the
// supervisor's status; with --end it ends it, with --wait it gets its folder first. Real processes,
// without a server.
constexpr char kAgent[] = R"sh(#!/bin/sh
dir=$3
if [ "$4" = --wait ]; then
  echo $$ >"$(dirname "$0")/spare.pid"
  dir=$(dd bs=4096 count=1 2>/dev/null <&3)
  exec 3<&-
  rm -f "$(dirname "$0")/spare.pid"
  [ -n "$dir" ] || exit 0
fi
if [ "$4" = --end ]; then
  script=$(cat "$dir/supervisor.status")
  kill -9 "$script"
  while grep -qs "^State:.[^Z]" "/proc/$script/status"; do sleep 0.01; done
  echo ended
  exit 0
fi
exec 9>"$dir/agent.lock"
flock -n 9 || exit 0
if [ ! -e "$dir/supervisor.status" ]; then
  echo started >>"$(dirname "$dir")/starts-$(basename "$dir")"
  # It names itself once it has let go of the lock.
  setsid sh -c 'echo $$ >"$0"; exec sleep 1000' "$dir/supervisor.status" \
    9>&- </dev/null >/dev/null 2>&1 &
  while [ ! -s "$dir/supervisor.status" ]; do sleep 0.01; done
fi
echo $$ >"$dir/agent.pid"
exec sleep 1000
)sh";

class ProcessCase {
 public:
  ProcessCase() {
    auto written = WriteFileAtomic(program_, kAgent, 0700);
    EXPECT_TRUE(written);
    RestartServer();
  }
  ~ProcessCase() {
    backend_.reset();
    for (const auto& folder : folders_) {
      if (auto pid = PidIn(folder, "agent.pid")) ::kill(pid, SIGKILL);
      if (auto pid = PidIn(folder, "supervisor.status")) ::kill(pid, SIGKILL);
    }
    for (const auto& [folder, script] : scripts_) {
      if (IsAlive(script)) ::kill(script.pid, SIGKILL);
    }
  }

  Backend& backend() { return *backend_; }
  void RestartServer() {
    backend_ =
        std::make_unique<ProcessBackend>(ProcessBackend::Options{dir_ / "attempts", program_});
  }
  LaunchPlan NewPlan(size_t hosts) {
    AttemptPlan plan;
    plan.attempt = AttemptId::New();
    LaunchPlan all;
    for (plan.host = 0; plan.host < hosts; ++plan.host) {
      folders_.push_back(FolderOf(plan));
      all.hosts.push_back(plan);
    }
    return all;
  }
  void AwaitScript(const AttemptPlan& plan) {
    while (!IsAlive(AgentOf(plan)) || !ScriptRuns(plan)) ::usleep(2'000);
  }
  // The agent that waits for an attempt, once there is one.
  ProcessIdentity AwaitSpare() {
    for (;; ::usleep(2'000)) {
      const auto text = ReadFile(dir_ / "spare.pid");
      const auto spare = IdentityOf(text ? std::atoi(text->c_str()) : 0);
      if (spare && IsAlive(*spare)) return *spare;
    }
  }
  void EndServer() { backend_.reset(); }
  void KillAgent(const AttemptPlan& plan) {
    const auto agent = AgentOf(plan);
    ::kill(agent.pid, SIGKILL);
    while (IsAlive(agent)) ::usleep(2'000);
  }
  // Its folder cannot be made.
  void BreakHost(const AttemptPlan& plan) {
    EXPECT_TRUE(MakeDirs(dir_ / "attempts"));
    EXPECT_TRUE(WriteFileAtomic(dir_ / ("attempts/" + FolderOf(plan)), "", 0600));
  }
  int ScriptStarts(const AttemptPlan& plan) {
    auto text = ReadFile(dir_ / ("attempts/starts-" + FolderOf(plan)));
    return text ? static_cast<int>(Split(Trim(*text), '\n').size()) : 0;
  }
  bool ScriptRuns(const AttemptPlan& plan) {
    if (auto pid = PidIn(FolderOf(plan), "supervisor.status"); pid != 0) {
      if (auto script = IdentityOf(pid)) scripts_.try_emplace(FolderOf(plan), *script);
    }
    const auto at = scripts_.find(FolderOf(plan));
    return at != scripts_.end() && IsAlive(at->second);
  }

  ProcessIdentity AgentOf(const AttemptPlan& plan) {
    const auto pid = PidIn(FolderOf(plan), "agent.pid");
    return (pid == 0 ? Result<ProcessIdentity>(ProcessIdentity{}) : IdentityOf(pid))
        .value_or(ProcessIdentity{});
  }

  static std::string FolderOf(const AttemptPlan& plan) {
    return HostFolderName(plan.attempt, plan.host);
  }
  std::string PathOf(const AttemptPlan& plan) const {
    return dir_ / ("attempts/" + FolderOf(plan));
  }

 private:
  pid_t PidIn(const std::string& folder, const char* file) {
    auto text = ReadFile(dir_ / ("attempts/" + folder + "/" + file));
    return text ? static_cast<pid_t>(std::atoi(text->c_str())) : 0;
  }

  TestDir dir_;
  std::string program_ = dir_ / "agent";
  std::vector<std::string> folders_;
  std::map<std::string, ProcessIdentity> scripts_;
  std::unique_ptr<ProcessBackend> backend_;
};

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
