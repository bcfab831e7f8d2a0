#include "launch/process/process_backend.h"

#include <fcntl.h>
#include <sys/file.h>

#include <csignal>

#include "base/files.h"
#include "base/process.h"
#include "job/ids.h"
#include "link/attempt_dir.h"

namespace athanor {
namespace {

// True when some process holds the lock, that is, when its owner lives.
bool IsLocked(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return false;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK;
}

}  // namespace

ProcessBackend::ProcessBackend(Options options) : options_(std::move(options)) {
  // Agents are our children until we end; nobody waits for them.
  ::signal(SIGCHLD, SIG_IGN);
}

ProcessBackend::~ProcessBackend() = default;

Result<std::string> ProcessBackend::DirOf(const std::string& handle) const {
  if (!AttemptId::Parse(handle)) {
    return Fail(ErrorCode::kInvalid, "not a handle of the process back end: " + handle);
  }
  return JoinPath(options_.attempts_dir, handle);
}

Result<std::string> ProcessBackend::Launch(const AttemptPlan& plan) {
  auto handle = plan.attempt.ToString();
  ATHANOR_TRY(auto dir, DirOf(handle));
  ATHANOR_CHECK_OK(MakeDirs(dir));
  if (IsLocked(JoinPath(dir, attempt_dir::kAgentLock))) return handle;
  ATHANOR_CHECK_OK(ReplaceFile(JoinPath(dir, attempt_dir::kPlan), EncodePlan(plan)));
  UniqueFd log(::open(JoinPath(dir, attempt_dir::kAgentLog).c_str(),
                      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) return FailErrno("open the agent's log in " + dir, errno);
  // The agent takes its lock itself; two agents started by mistake leave one.
  ATHANOR_TRY([[maybe_unused]] auto pid,
              SpawnDetached({options_.program, "agent", "--dir", dir}, log.get()));
  return handle;
}

Result<std::vector<HostStatus>> ProcessBackend::Poll(const std::string& handle) {
  ATHANOR_TRY(auto dir, DirOf(handle));
  if (!Exists(dir)) return Fail(ErrorCode::kNotFound, "no attempt " + handle + " on this machine");
  HostStatus status;
  if (IsLocked(JoinPath(dir, attempt_dir::kAgentLock))) {
    status.state = HostStatus::State::kAlive;
  } else {
    // What became of the script is for the next agent to find out.
    status.state = HostStatus::State::kAgentGone;
    status.detail = "the agent died";
  }
  return std::vector<HostStatus>{status};
}

Status ProcessBackend::Kill(const std::string& handle) {
  ATHANOR_TRY(auto dir, DirOf(handle));
  if (!Exists(dir)) return Ok();
  // How to end a supervisor is the agent's knowledge.
  UniqueFd log(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ATHANOR_TRY([[maybe_unused]] auto pid,
              SpawnDetached({options_.program, "agent", "--dir", dir, "--end"}, log.get()));
  return Ok();
}

Status ProcessBackend::Release(const std::string& handle) {
  ATHANOR_TRY(auto dir, DirOf(handle));
  return RemoveTree(dir);
}

Result<std::vector<std::string>> ProcessBackend::Adopt() {
  std::vector<std::string> handles;
  auto names = ListDir(options_.attempts_dir);
  if (!names) return handles;
  for (const auto& name : *names) {
    if (AttemptId::Parse(name)) handles.push_back(name);
  }
  return handles;
}

}  // namespace athanor
