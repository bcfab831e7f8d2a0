#include "launch/process/process_backend.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "job/host_folder.h"
#include "link/attempt_dir.h"

namespace athanor {
namespace {

// Longer than the agent itself waits for the supervisor's end.
constexpr int kEndWaitMs = 15'000;

// True if some process holds the lock, that is, if its owner lives.
bool IsLocked(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return false;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK;
}

Result<AttemptId> AttemptOf(const std::string& handle) {
  const auto attempt = AttemptId::Parse(handle);
  if (!attempt) {
    return Fail(ErrorCode::kInvalid, "not a handle of the process back end: " + handle);
  }
  return *attempt;
}

}  // namespace

ProcessBackend::ProcessBackend(Options options) : options_(std::move(options)) {
  if (options_.keep_spare) spare_.emplace(options_.program, options_.attempts_dir, children_);
}

ProcessBackend::~ProcessBackend() = default;

std::string ProcessBackend::DirOf(const AttemptId& attempt, uint32_t host) const {
  return JoinPath(options_.attempts_dir, HostFolderName(attempt, host));
}

uint32_t ProcessBackend::HostsOf(const AttemptId& attempt) const {
  const auto count_in = [](const std::string& dir) {
    const auto text = ReadFile(JoinPath(dir, attempt_dir::kHostCount), 32);
    return text ? static_cast<uint32_t>(std::strtoul(text->c_str(), nullptr, 10)) : 1u;
  };
  if (Exists(DirOf(attempt, 0))) return count_in(DirOf(attempt, 0));
  // Something removed the first: any other knows as much.
  uint32_t hosts = 0;
  const auto names = ListDir(options_.attempts_dir);
  for (size_t i = 0; names && i < names->size(); ++i) {
    const auto folder = ParseHostFolder((*names)[i]);
    if (!folder || folder->attempt != attempt) continue;
    hosts =
        std::max({hosts, folder->host + 1, count_in(JoinPath(options_.attempts_dir, (*names)[i]))});
  }
  return hosts;
}

// Makes the folders of all hosts, with their plans, before any agent starts: so if one is missing
// once an agent was there, that host was lost, and it is not started again.
Status ProcessBackend::LayOut(const LaunchPlan& plan, std::vector<std::string>& made) const {
  auto paths = options_.paths();
  bool began = false;
  for (uint32_t host = 0; host < plan.hosts.size(); ++host) {
    began = began || Exists(JoinPath(DirOf(plan.attempt(), host), attempt_dir::kAgentLock));
  }
  for (uint32_t host = 0; host < plan.hosts.size(); ++host) {
    if (plan.IsOver(host)) continue;
    const auto dir = DirOf(plan.attempt(), host);
    if (!Exists(dir)) {
      if (began) continue;
      made.push_back(dir);
      ATHANOR_CHECK_OK(MakeDirs(dir));
    }
    const auto count = JoinPath(dir, attempt_dir::kHostCount);
    if (plan.hosts.size() > 1 && !Exists(count)) {
      ATHANOR_CHECK_OK(ReplaceFile(count, std::to_string(plan.hosts.size()) + "\n"));
    }
    if (IsLocked(JoinPath(dir, attempt_dir::kAgentLock))) continue;
    paths.dir = dir;
    ATHANOR_CHECK_OK(
        ReplaceFile(JoinPath(dir, attempt_dir::kPlan), EncodeHostPlan({plan.hosts[host], paths})));
  }
  return Ok();
}

Status ProcessBackend::StartAgents(const LaunchPlan& plan) {
  for (uint32_t host = 0; host < plan.hosts.size(); ++host) {
    const auto dir = DirOf(plan.attempt(), host);
    if (plan.IsOver(host) || !Exists(dir) || IsLocked(JoinPath(dir, attempt_dir::kAgentLock)))
      continue;
    if (host == 0 && spare_ && spare_->Give(dir)) continue;
    UniqueFd log(::open(JoinPath(dir, attempt_dir::kAgentLog).c_str(),
                        O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) return FailErrno("open the agent's log in " + dir, errno);
    // The agent takes its lock itself; if two are started by mistake, one remains.
    ATHANOR_TRY(const auto pid,
                SpawnDetached({options_.program, "agent", "--dir", dir}, log.get()));
    children_.Add(pid);
  }
  return Ok();
}

Result<std::string> ProcessBackend::Launch(const LaunchPlan& plan) {
  std::vector<std::string> made;
  auto started = LayOut(plan, made);
  if (started) started = StartAgents(plan);
  if (started) return plan.attempt().ToString();
  // None, then; hosts that an earlier call started go on. An agent ends when its folder is gone.
  (void)End(made).ok();
  for (const auto& dir : made) (void)RemoveTree(dir).ok();
  return tl::unexpected(std::move(started).error());
}

std::vector<Result<std::vector<HostStatus>>> ProcessBackend::Poll(
    const std::vector<std::string>& handles) {
  std::vector<Result<std::vector<HostStatus>>> all;
  for (const auto& handle : handles) all.push_back(PollOne(handle));
  return all;
}

Result<std::vector<HostStatus>> ProcessBackend::PollOne(const std::string& handle) const {
  ATHANOR_TRY(const auto attempt, AttemptOf(handle));
  const auto hosts = HostsOf(attempt);
  if (hosts == 0) return Fail(ErrorCode::kNotFound, "no attempt " + handle + " on this machine");
  std::vector<HostStatus> all(hosts);
  for (uint32_t host = 0; host < hosts; ++host) {
    auto& status = all[host];
    const auto dir = DirOf(attempt, host);
    if (!Exists(dir)) {
      status.state = HostStatus::State::kGone;
      status.detail = "its folder is gone";
    } else if (IsLocked(JoinPath(dir, attempt_dir::kAgentLock))) {
      status.state = HostStatus::State::kAlive;
    } else {
      // The next agent finds out what became of the script.
      status.state = HostStatus::State::kAgentGone;
      status.detail = "the agent died";
    }
  }
  return all;
}

// Only an agent knows how to end a supervisor and what else to remove: it prints "ended" when
// nothing runs. All at the same time.
Status ProcessBackend::End(const std::vector<std::string>& dirs) {
  std::vector<std::pair<std::string, UniqueFd>> waiting;
  for (const auto& dir : dirs) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("make a pipe", errno);
    waiting.emplace_back(dir, UniqueFd(ends[0]));
    const UniqueFd write(ends[1]);
    ATHANOR_TRY(const auto pid,
                SpawnDetached({options_.program, "agent", "--dir", dir, "--end"}, write.get()));
    children_.Add(pid);
  }
  for (const auto& [dir, read] : waiting) {
    std::string said;
    // Its exit status is not used: nobody waits for it.
    for (::pollfd wait{read.get(), POLLIN, 0}; ::poll(&wait, 1, kEndWaitMs) > 0;) {
      char bytes[256];
      const auto n = ::read(read.get(), bytes, sizeof bytes);
      if (n <= 0) break;
      said.append(bytes, static_cast<size_t>(n));
    }
    if (said.find("ended") == std::string::npos) {
      return Fail(ErrorCode::kUnavailable,
                  "what is left of the attempt in " + dir + " did not end");
    }
  }
  return Ok();
}

Status ProcessBackend::Release(const std::string& handle) {
  ATHANOR_TRY(const auto attempt, AttemptOf(handle));
  const auto hosts = HostsOf(attempt);
  std::vector<std::string> dirs, to_end;
  for (uint32_t host = 0; host < hosts; ++host) {
    const auto dir = DirOf(attempt, host);
    if (!Exists(dir)) continue;
    dirs.push_back(dir);
    const bool started = Exists(JoinPath(dir, attempt_dir::kSupervisorStatus));
    const bool over = started && Exists(JoinPath(dir, attempt_dir::kExit));
    // Several hosts also have a network.
    if (hosts > 1 || (started && !over)) to_end.push_back(dir);
  }
  ATHANOR_CHECK_OK(End(to_end));
  for (const auto& dir : dirs) ATHANOR_CHECK_OK(RemoveTree(dir));
  return Ok();
}

}  // namespace athanor
