#include "launch/process/process_backend.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>

#include "base/io/files.h"
#include "base/exec/process.h"
#include "job/ids.h"
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

}  // namespace

ProcessBackend::ProcessBackend(Options options)
    : options_(std::move(options)), spare_(options_.program, options_.attempts_dir) {
  // Agents are our children until we end; nothing waits for them.
  ::signal(SIGCHLD, SIG_IGN);
}

ProcessBackend::~ProcessBackend() = default;

Result<std::string> ProcessBackend::DirOf(const std::string& handle) const {
  if (!AttemptId::Parse(handle)) {
    return Fail(ErrorCode::kInvalid, "not a handle of the process back end: " + handle);
  }
  return JoinPath(options_.attempts_dir, handle);
}

Result<std::string> ProcessBackend::Launch(const LaunchPlan& attempt) {
  const auto& plan = attempt.hosts.front();
  auto handle = plan.attempt.ToString();
  ATHANOR_TRY(auto dir, DirOf(handle));
  ATHANOR_CHECK_OK(MakeDirs(dir));
  if (IsLocked(JoinPath(dir, attempt_dir::kAgentLock))) return handle;
  ATHANOR_CHECK_OK(ReplaceFile(JoinPath(dir, attempt_dir::kPlan), EncodePlan(plan)));
  if (spare_.Give(dir)) return handle;
  UniqueFd log(::open(JoinPath(dir, attempt_dir::kAgentLog).c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return FailErrno("open the agent's log in " + dir, errno);
  // The agent takes its lock itself; if two are started by mistake, one remains.
  ATHANOR_TRY([[maybe_unused]] auto pid,
              SpawnDetached({options_.program, "agent", "--dir", dir}, log.get()));
  return handle;
}

std::vector<Result<std::vector<HostStatus>>> ProcessBackend::Poll(
    const std::vector<std::string>& handles) {
  std::vector<Result<std::vector<HostStatus>>> all;
  for (const auto& handle : handles) all.push_back(PollOne(handle));
  return all;
}

Result<std::vector<HostStatus>> ProcessBackend::PollOne(const std::string& handle) const {
  ATHANOR_TRY(auto dir, DirOf(handle));
  if (!Exists(dir)) return Fail(ErrorCode::kNotFound, "no attempt " + handle + " on this machine");
  HostStatus status;
  if (IsLocked(JoinPath(dir, attempt_dir::kAgentLock))) {
    status.state = HostStatus::State::kAlive;
  } else {
    // The next agent finds out what became of the script.
    status.state = HostStatus::State::kAgentGone;
    status.detail = "the agent died";
  }
  return std::vector<HostStatus>{status};
}

// Only the agent knows how to end a supervisor: it prints "ended" when nothing runs.
Status ProcessBackend::EndScript(const std::string& dir) const {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("make a pipe", errno);
  UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  ATHANOR_TRY([[maybe_unused]] auto pid,
              SpawnDetached({options_.program, "agent", "--dir", dir, "--end"}, write.get()));
  write.reset();
  std::string said;
  // Its exit status is not used: children of this program are not waited for.
  for (::pollfd wait{read.get(), POLLIN, 0}; ::poll(&wait, 1, kEndWaitMs) > 0;) {
    char bytes[256];
    const auto n = ::read(read.get(), bytes, sizeof bytes);
    if (n <= 0) break;
    said.append(bytes, static_cast<size_t>(n));
  }
  if (said.find("ended") != std::string::npos) return Ok();
  return Fail(ErrorCode::kUnavailable, "what is left of the attempt in " + dir + " did not end");
}

Status ProcessBackend::Release(const std::string& handle) {
  ATHANOR_TRY(auto dir, DirOf(handle));
  const bool started = Exists(JoinPath(dir, attempt_dir::kSupervisorStatus));
  if (started && !Exists(JoinPath(dir, attempt_dir::kExit))) {
    ATHANOR_CHECK_OK(EndScript(dir));
  }
  return RemoveTree(dir);
}

}  // namespace athanor
