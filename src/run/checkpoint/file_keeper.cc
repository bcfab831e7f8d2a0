#include "run/checkpoint/file_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/text.h"
#include "record/checkpoints/checkpoint_manifest.h"

namespace athanor {
namespace {

constexpr size_t kChunk = 1 << 20;

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

Result<FileStamp> StampOf(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return FailErrno("stat", errno);
  return FileStamp{info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
                   Nanoseconds(info.st_mtim), Nanoseconds(info.st_ctim)};
}

tl::unexpected<Error> Changed(const std::string& name, KeptFile& kept) {
  kept.parts.clear();
  kept.changed = true;
  return Fail(ErrorCode::kConflict, "'" + Printable(name) + "' changed while it was read");
}

// The name of one part; kCorrupt if the file is too short.
Result<std::string> NamePart(int fd, uint64_t at, uint64_t bytes, const JobFiles::Pace& pace) {
  Sha256 hash;
  std::string buffer(std::clamp<uint64_t>(bytes, 1, kChunk), '\0');
  for (uint64_t done = 0; done < bytes;) {
    const size_t want = std::min<uint64_t>(buffer.size(), bytes - done);
    const ssize_t got = ::pread(fd, buffer.data(), want, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", errno);
    if (got == 0) return Fail(ErrorCode::kCorrupt, "the file became shorter while it was read");
    hash.Update({buffer.data(), static_cast<size_t>(got)});
    done += static_cast<uint64_t>(got);
    if (pace && !pace(static_cast<uint64_t>(got))) {
      return Fail(ErrorCode::kCancelled, "interrupted");
    }
  }
  return hash.HexDigest();
}

Result<std::string> KeepPart(int fd, uint64_t at, uint64_t bytes, JobFiles* files,
                             const JobFiles::Pace& pace) {
  if (files == nullptr) return NamePart(fd, at, bytes, pace);
  ATHANOR_TRY(BlobRef part, files->Put(Shelf::kParts, fd, at, bytes, pace));
  return std::move(part.sha256);
}

}  // namespace

Status KeepFile(int dir_fd, const std::string& name, uint64_t part_bytes, JobFiles* files,
                Yielder* yielder, KeptFile& kept) {
  kept.changed = false;
  const auto fd = OpenBeneath(dir_fd, name, O_RDONLY | O_NONBLOCK);
  if (!fd) {
    if (fd.error().code == ErrorCode::kNotFound || fd.error().code == ErrorCode::kDenied) {
      struct stat info {};
      // Replaced by a link, or removed: another file. A file that we may not read is an error.
      if (::fstatat(dir_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(info.st_mode)) {
        return Changed(name, kept);
      }
    }
    return tl::unexpected(fd.error());
  }
  const uint64_t count = PartCount(kept.stamp.size, part_bytes);
  JobFiles::Pace pace;
  if (yielder != nullptr) pace = [yielder](uint64_t bytes) { return yielder->Spend(bytes); };
  for (;;) {
    // Before the first part, between parts and after the last one.
    ATHANOR_TRY(const FileStamp now, StampOf(fd->get()));
    if (now != kept.stamp) return Changed(name, kept);
    if (kept.parts.size() == count) break;
    const size_t part = kept.parts.size();
    auto sha256 = KeepPart(fd->get(), part * part_bytes,
                           PartSize(kept.stamp.size, part_bytes, part), files, pace);
    if (!sha256 && sha256.error().code == ErrorCode::kCorrupt) return Changed(name, kept);
    if (!sha256) return tl::unexpected(std::move(sha256).error());
    kept.parts.push_back(std::move(*sha256));
  }
  kept.complete = true;
  return Ok();
}

}  // namespace athanor
