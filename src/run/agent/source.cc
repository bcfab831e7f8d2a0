#include "run/agent/source.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/tree_bytes.h"
#include "base/text/text.h"
#include "job/manifest.h"
#include "run/agent/blob_cache.h"
#include "run/agent/blob_fetch.h"

namespace athanor {
namespace {

// In a child, since the mount namespace must not be ours.
bool TryOverlay(const std::string& dir) {
  for (const char* name : {"/lower", "/upper", "/work", "/at"}) {
    if (!MakeDirs(dir + name)) return false;
  }
  pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    auto options = "lowerdir=" + dir + "/lower,upperdir=" + dir + "/upper,workdir=" + dir + "/work";
    bool ok = ::unshare(CLONE_NEWNS) == 0 &&
              ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("overlay", (dir + "/at").c_str(), "overlay", 0, options.c_str()) == 0;
    ::_exit(ok ? 0 : 1);
  }
  int status = 1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

// Held by agents that take a source into use (shared) and by the one that removes it.
UniqueFd LockSources(const std::string& sources, int kind) {
  UniqueFd lock(::open(JoinPath(sources, ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return lock;
  while (::flock(lock.get(), kind) != 0) {
    if (errno != EINTR) return UniqueFd();
  }
  return lock;
}

// Whether it exists; its time then shows that it was used.
bool UseSource(const std::string& sources, const std::string& home) {
  if (!Exists(home)) return false;
  const auto lock = LockSources(sources, LOCK_SH);
  return lock && ::utimensat(AT_FDCWD, home.c_str(), nullptr, 0) == 0;
}

}  // namespace

Status LayOutBundle(const SourceFrom& from, const std::string& bundle, const std::string& dir) {
  const auto cache = BlobCache::Of(from.cache_dir);
  UniqueFd fd;
  if (!from.is_here) fd = cache.Take(bundle);
  if (!fd) {
    ATHANOR_TRY(fd, from.files.Get(Shelf::kBlobs, bundle));
    if (!from.is_here) cache.Keep(bundle, fd.get());
  }
  ATHANOR_TRY(const auto text, ReadAll(fd.get(), kManifestTextLimit));
  ATHANOR_TRY(const auto manifest, ReadManifest(text));
  ATHANOR_TRY(const auto folder, OpenDir(dir));
  if (from.is_here) {
    return LayOut(manifest, folder.get(),
                  [&](const std::string& sha) { return from.files.Get(Shelf::kBlobs, sha); });
  }
  BlobFetch fetch(from.files, cache, manifest);
  auto done =
      LayOut(manifest, folder.get(), [&](const std::string& sha) { return fetch.Open(sha); });
  if (fetch.fetched()) cache.Trim({});
  return done;
}

Result<std::string> CachedSource(const SourceFrom& from, const std::string& bundle) {
  auto sources = JoinPath(from.cache_dir, "sources");
  auto home = JoinPath(sources, bundle);
  if (UseSource(sources, home)) return home;
  auto making = JoinPath(sources, "." + NewUlid().ToString());
  ATHANOR_CHECK_OK(MakeDirs(making, 0755));
  auto status = LayOutBundle(from, bundle, making);
  if (status && ::rename(making.c_str(), home.c_str()) == 0) {
    (void)UseSource(sources, home);
    return home;
  }
  int error = errno;
  (void)RemoveTree(making).ok();
  if (!status) return tl::unexpected(status.error());
  // Another agent was faster; its copy is as good.
  if (UseSource(sources, home)) return home;
  return FailErrno("keep the source in " + home, error);
}

Result<CacheSwept> SweepSources(const std::string& cache_dir, WallTime unused_since, bool dry_run) {
  CacheSwept swept;
  swept.bytes = BlobCache::Of(cache_dir).Sweep(unused_since, dry_run);
  const auto sources = JoinPath(cache_dir, "sources");
  if (!Exists(sources)) return swept;
  ATHANOR_TRY(const auto names, ListDir(sources));
  for (const auto& name : names) {
    if (name.front() == '.') continue;
    const auto home = JoinPath(sources, name);
    const auto gone = JoinPath(sources, "." + NewUlid().ToString());
    {
      const auto lock = LockSources(sources, LOCK_EX);
      if (!lock) return FailErrno("lock " + sources, errno);
      struct stat used {};
      if (::stat(home.c_str(), &used) != 0) continue;
      if (MillisOf(used.st_mtim) >= unused_since.ms) {
        ++swept.kept;
        continue;
      }
      if (!dry_run && ::rename(home.c_str(), gone.c_str()) != 0) {
        return FailErrno("remove " + home, errno);
      }
    }
    ++swept.removed;
    swept.bytes += TreeBytes(dry_run ? home : gone);
    if (!dry_run) ATHANOR_CHECK_OK(RemoveTree(gone));
  }
  return swept;
}

bool OverlayWorks(const std::string& cache_dir) {
  auto boot = std::string(Trim(ReadFile("/proc/sys/kernel/random/boot_id").value_or("")));
  auto answer = JoinPath(cache_dir, "overlay");
  if (auto kept = ReadFile(answer)) {
    auto parts = Split(*kept, ' ');
    if (parts.size() == 2 && parts[0] == boot) return parts[1] == "yes";
  }
  auto dir = JoinPath(cache_dir, ".try-" + NewUlid().ToString());
  bool works = TryOverlay(dir);
  (void)RemoveTree(dir).ok();
  (void)ReplaceFile(answer, boot + (works ? " yes" : " no")).ok();
  return works;
}

}  // namespace athanor
