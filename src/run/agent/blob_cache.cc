#include "run/agent/blob_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// Files without their name yet, of agents that died.
constexpr int64_t kStaleSeconds = 24 * 3'600;
// A use this soon after the last is not noted.
constexpr int64_t kNotedSeconds = 3'600;

bool IsName(std::string_view sha256) {
  return sha256.size() == 64 && std::all_of(sha256.begin(), sha256.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Status CopyTo(int from, const std::string& path) {
  UniqueFd to(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!to) return FailErrno("open " + path, errno);
  std::string buffer(256u << 10, '\0');
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(from, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read a blob", errno);
    if (got == 0) return Ok();
    ATHANOR_CHECK_OK(WriteAll(to.get(), {buffer.data(), static_cast<size_t>(got)}));
    at += got;
  }
}

}  // namespace

struct BlobCache::Kept {
  std::string path;
  uint64_t bytes = 0;
  timespec used{};
};

BlobCache BlobCache::Of(const std::string& cache_dir) {
  return BlobCache(JoinPath(cache_dir, "blobs"));
}

std::string BlobCache::PathOf(const std::string& sha256) const {
  return dir_ + "/" + sha256.substr(0, 2) + "/" + sha256;
}

bool BlobCache::Has(const std::string& sha256) const {
  return IsName(sha256) && Exists(PathOf(sha256));
}

UniqueFd BlobCache::Take(const std::string& sha256) const {
  if (!IsName(sha256)) return UniqueFd();
  const auto path = PathOf(sha256);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return UniqueFd();
  const auto found = Sha256File(fd.get());
  if (!found || *found != sha256) {
    ::unlink(path.c_str());
    return UniqueFd();
  }
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return UniqueFd();
  if (info.st_mtim.tv_sec + kNotedSeconds < ::time(nullptr)) ::futimens(fd.get(), nullptr);
  return fd;
}

void BlobCache::Keep(const std::string& sha256, int fd) const {
  struct stat info {};
  if (!IsName(sha256) || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) > kLargest) {
    return;
  }
  const auto path = PathOf(sha256);
  if (!MakeDirs(DirName(path))) return;
  const auto opened = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, opened.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ||
      errno == EEXIST) {
    return;
  }
  // It lies on another file system, or on one that cannot give it a name.
  const auto part = dir_ + "/." + NewUlid().ToString();
  if (CopyTo(fd, part) && std::rename(part.c_str(), path.c_str()) == 0) return;
  ::unlink(part.c_str());
}

template <class Visit>
void BlobCache::ForEach(Visit visit) const {
  for (const auto& shard : ListDir(dir_).value_or(std::vector<std::string>())) {
    const auto folder = JoinPath(dir_, shard);
    struct stat info {};
    if (shard.front() == '.') {
      if (::lstat(folder.c_str(), &info) == 0 &&
          info.st_mtim.tv_sec + kStaleSeconds < ::time(nullptr)) {
        ::unlink(folder.c_str());
      }
      continue;
    }
    for (const auto& name : ListDir(folder).value_or(std::vector<std::string>())) {
      Kept kept{JoinPath(folder, name), 0, {}};
      if (!IsName(name) || ::lstat(kept.path.c_str(), &info) != 0) continue;
      kept.bytes = static_cast<uint64_t>(info.st_size);
      kept.used = info.st_mtim;
      visit(std::move(kept));
    }
  }
}

void BlobCache::Trim(const Limits& limits) const {
  std::vector<Kept> all;
  uint64_t bytes = 0;
  ForEach([&](Kept kept) {
    bytes += kept.bytes;
    all.push_back(std::move(kept));
  });
  if (bytes <= limits.bytes && all.size() <= limits.files) return;
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  // A quarter more than needed, so that not every source has to.
  size_t left = all.size();
  for (const auto& kept : all) {
    if (bytes <= limits.bytes / 4 * 3 && left <= limits.files / 4 * 3) return;
    ::unlink(kept.path.c_str());
    bytes -= kept.bytes;
    --left;
  }
}

uint64_t BlobCache::Sweep(WallTime unused_since, bool dry_run) const {
  uint64_t bytes = 0;
  ForEach([&](const Kept& kept) {
    if (kept.used.tv_sec * 1'000 + kept.used.tv_nsec / 1'000'000 >= unused_since.ms) return;
    bytes += kept.bytes;
    if (!dry_run) ::unlink(kept.path.c_str());
  });
  return bytes;
}

}  // namespace athanor
