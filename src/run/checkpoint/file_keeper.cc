#include "run/checkpoint/file_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>

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
  return Fail(ErrorCode::kConflict, "'" + Printable(name) + "' changed while it was read");
}

// One part; its name, or nothing when the file is too short.
Result<std::optional<std::string>> KeepPart(int fd, uint64_t at, uint64_t bytes,
                                            const BlobStore* store, Yielder* yielder,
                                            std::string& buffer) {
  std::optional<BlobStore::Writer> writer;
  if (store != nullptr) {
    ATHANOR_TRY(auto made, store->NewBlob());
    writer.emplace(std::move(made));
  }
  Sha256 hash;
  for (uint64_t done = 0; done < bytes;) {
    const size_t want = std::min<uint64_t>(buffer.size(), bytes - done);
    const ssize_t got = ::pread(fd, buffer.data(), want, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", errno);
    if (got == 0) return std::optional<std::string>();
    const std::string_view chunk(buffer.data(), static_cast<size_t>(got));
    if (writer) {
      ATHANOR_CHECK_OK(writer->Write(chunk));
    } else {
      hash.Update(chunk);
    }
    done += chunk.size();
    if (yielder != nullptr && !yielder->Spend(chunk.size())) {
      return Fail(ErrorCode::kCancelled, "interrupted");
    }
  }
  if (!writer) return std::optional<std::string>(hash.HexDigest());
  ATHANOR_TRY(const BlobRef part, writer->Commit());
  return std::optional<std::string>(part.sha256);
}

}  // namespace

Status KeepFile(int dir_fd, const std::string& name, uint64_t part_bytes, const BlobStore* store,
                Yielder* yielder, KeptFile& kept) {
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
  std::string buffer(std::min<uint64_t>(kChunk, std::max<uint64_t>(kept.stamp.size, 1)), '\0');
  for (;;) {
    // Before the first part, between parts and after the last one.
    ATHANOR_TRY(const FileStamp now, StampOf(fd->get()));
    if (now != kept.stamp) return Changed(name, kept);
    if (kept.parts.size() == count) break;
    const size_t part = kept.parts.size();
    ATHANOR_TRY(auto sha256,
                KeepPart(fd->get(), part * part_bytes, PartSize(kept.stamp.size, part_bytes, part),
                         store, yielder, buffer));
    if (!sha256) return Changed(name, kept);
    kept.parts.push_back(std::move(*sha256));
  }
  kept.complete = true;
  return Ok();
}

}  // namespace athanor
