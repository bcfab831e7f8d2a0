#include "run/environment/environment_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/tree_bytes.h"
#include "base/text/text.h"

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
      request.log("waiting: another job or host builds this environment\n");
    }
    said = true;
    if (request.cancelled && request.cancelled()) {
      return Fail(ErrorCode::kCancelled, "stopped while waiting for the environment");
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return lock;
}

// Finds it and marks it as used now, in one step: what is marked is not removed by a sweep.
std::string Use(const std::string& home) {
  auto dir = Finished(home);
  if (dir.empty()) return dir;
  return ::utimensat(AT_FDCWD, JoinPath(home, "current").c_str(), nullptr, 0) == 0 ? dir : "";
}

// Without waiting: the process that builds or removes it holds the lock, and then it does not
// exist.
std::string UseAtOnce(const std::string& home) {
  const UniqueFd lock(::open(JoinPath(home, "lock").c_str(), O_RDONLY | O_CLOEXEC));
  return lock && ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0 ? Use(home) : "";
}

void RemoveLeftovers(const std::string& home) {
  const auto names = ListDir(home);
  if (!names) return;
  for (const auto& name : *names) {
    if (name != "lock") (void)RemoveTree(JoinPath(home, name)).ok();
  }
}

// After a power cut, what `current` names must be complete.
Status SyncDisk(const std::string& dir) {
  ATHANOR_TRY(const auto fd, OpenDir(dir));
  return ::syncfs(fd.get()) == 0 ? Ok() : FailErrno("sync " + dir, errno);
}

}  // namespace

Result<CachedEnvironment> FindOrBuild(const CacheRequest& request,
                                      const std::function<Status(const std::string& dir)>& build) {
  const auto home = JoinPath(JoinPath(request.cache_dir, "envs"), request.key);
  if (auto dir = UseAtOnce(home); !dir.empty()) return CachedEnvironment{std::move(dir), false};
  ATHANOR_CHECK_OK(MakeDirs(home));
  ATHANOR_TRY(const auto lock, Lock(request, home));
  if (auto dir = Use(home); !dir.empty()) return CachedEnvironment{std::move(dir), false};
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

Result<CacheSwept> SweepEnvironments(const std::string& cache_dir, WallTime unused_since,
                                     bool dry_run) {
  CacheSwept swept;
  const auto envs = JoinPath(cache_dir, "envs");
  if (!Exists(envs)) return swept;
  ATHANOR_TRY(const auto keys, ListDir(envs));
  for (const auto& key : keys) {
    const auto home = JoinPath(envs, key);
    const UniqueFd lock(::open(JoinPath(home, "lock").c_str(), O_RDWR | O_CLOEXEC));
    // One that is being built or taken into use is skipped for now.
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    struct stat used {};
    if (::stat(JoinPath(home, "current").c_str(), &used) != 0) continue;
    if (MillisOf(used.st_mtim) >= unused_since.ms) {
      ++swept.kept;
      continue;
    }
    ++swept.removed;
    swept.bytes += TreeBytes(home);
    if (dry_run) continue;
    // The commit point first: half an environment does not count.
    ATHANOR_CHECK_OK(RemoveTree(JoinPath(home, "current")));
    RemoveLeftovers(home);
  }
  return swept;
}

int64_t MillisOf(const timespec& time) { return time.tv_sec * 1000LL + time.tv_nsec / 1'000'000; }

}  // namespace athanor
