// For tests only: a case of backend_conformance.h for back ends that start their hosts as a
// ProcessBackend does, with a shell script in the agent's place.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "job/host_folder.h"
#include "launch/process/process_backend.h"

namespace athanor {

// Replaces `athanor agent`: it takes the lock, starts the script once, and names it in the
// supervisor's status; with --end it ends it, with --wait it gets its folder first; with --machine
// it is the half of a CommandBackend that runs elsewhere. Real processes, without a server.
inline constexpr char kAgent[] = R"sh(#!/bin/sh
dir=$3
[ "$2" != --machine ] || exec "$MACHINE_SIDE" "$3" "$0"
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
  using Make =
      std::function<std::unique_ptr<Backend>(const std::string& dir, const std::string& program)>;
  explicit ProcessCase(Make make =
                           [](const std::string& dir, const std::string& program) {
                             return std::make_unique<ProcessBackend>(
                                 ProcessBackend::Options{dir + "/attempts", program});
                           })
      : make_(std::move(make)) {
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
  void RestartServer() { backend_ = make_(dir_.path(), program_); }
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

  const Make make_;
  TestDir dir_;
  std::string program_ = dir_ / "agent";
  std::vector<std::string> folders_;
  std::map<std::string, ProcessIdentity> scripts_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace athanor
