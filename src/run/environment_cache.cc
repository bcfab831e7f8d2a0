#include "run/environment_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/files.h"
#include "base/ids.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{50};

// Empty when there is none, or what it names is gone.
std::string Finished(const std::string& home) {
  const auto name = ReadFile(JoinPath(home, "current"), 256);
  if (!name || !CheckRelativeName(*name).ok()) return "";
  auto dir = JoinPath(home, *name);
  return Exists(JoinPath(dir, "bin")) ? dir : "";
}

Result<UniqueFd> Lock(const CacheRequest& request, const std::string& home) {
  const auto path = JoinPath(home, "lock");
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return FailErrno("open " + path, errno);
  bool said = false;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return FailErrno("lock " + path, errno);
    if (!said && request.log) {
      request.log("waiting for another job that builds this environment\n");
    }
    said = true;
    if (request.cancelled && request.cancelled()) {
      return Fail(ErrorCode::kCancelled, "stopped while waiting for the environment");
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return lock;
}

void RemoveLeftovers(const std::string& home) {
  const auto names = ListDir(home);
  if (!names) return;
  for (const auto& name : *names) {
    if (name != "lock") (void)RemoveTree(JoinPath(home, name)).ok();
  }
}

// After a power cut, what `current` names must be whole.
Status SyncDisk(const std::string& dir) {
  ATHANOR_TRY(const auto fd, OpenDir(dir));
  return ::syncfs(fd.get()) == 0 ? Ok() : FailErrno("sync " + dir, errno);
}

}  // namespace

Result<CachedEnvironment> FindOrBuild(const CacheRequest& request,
                                      const std::function<Status(const std::string& dir)>& build) {
  const auto home = JoinPath(JoinPath(request.cache_dir, "envs"), request.key);
  if (auto dir = Finished(home); !dir.empty()) return CachedEnvironment{std::move(dir), false};
  ATHANOR_CHECK_OK(MakeDirs(home));
  ATHANOR_TRY(const auto lock, Lock(request, home));
  if (auto dir = Finished(home); !dir.empty()) return CachedEnvironment{std::move(dir), false};
  RemoveLeftovers(home);
  const auto name = "env-" + RandomHex(4);
  const auto dir = JoinPath(home, name);
  auto done = build(dir);
  if (done.ok()) done = SyncDisk(dir);
  if (done.ok()) done = WriteFileAtomic(JoinPath(home, "current"), name);
  if (!done.ok()) {
    RemoveLeftovers(home);
    return Fail(std::move(done).error());
  }
  return CachedEnvironment{dir, true};
}

}  // namespace athanor
