#include "run/checkpoint/file_keeper.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

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

// The parts of one open file that are not kept yet.
class Parts {
 public:
  Parts(int fd, const std::string& name, uint64_t part_bytes, const PartSink& sink, KeptFile& kept)
      : fd_(fd), name_(name), part_bytes_(part_bytes), sink_(sink), kept_(kept) {}

  Status Keep() {
    const size_t count = PartCount(kept_.stamp.size, part_bytes_);
    const size_t first = kept_.parts.size();
    const size_t threads = std::min(sink_.at_once, count - first);
    if (threads > 1) return KeepAtOnce(first, count, threads);
    for (size_t part = first; part < count; ++part) {
      auto sha256 = KeepOne(part, sink_.yielder);
      if (!sha256) return Failed(std::move(sha256).error());
      kept_.parts.push_back(std::move(*sha256));
    }
    return Ok();
  }

 private:
  // While one is named, another one travels, and a third one is written and synced at its end.
  Status KeepAtOnce(size_t first, size_t count, size_t threads) {
    std::vector<Result<std::string>> done(count - first, Fail(ErrorCode::kCancelled, "not begun"));
    std::atomic<size_t> next = 0;
    std::atomic<bool> failed = false;
    std::vector<std::thread> all;
    for (size_t i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        std::optional<Yielder> yielder;
        if (sink_.yielder != nullptr) {
          Yielder::LowerPriority();
          yielder.emplace(sink_.yielder->OneOf(threads));
        }
        while (!failed) {
          const size_t mine = next++;
          if (mine >= done.size()) return;
          done[mine] = KeepOne(first + mine, yielder ? &*yielder : nullptr);
          if (!done[mine]) failed = true;
        }
      });
    }
    for (auto& one : all) one.join();
    for (auto& sha256 : done) {
      if (!sha256) break;
      kept_.parts.push_back(std::move(*sha256));
    }
    if (!failed) return Ok();
    // What stopped the others; they were not begun, or cancelled.
    const auto why = std::find_if(done.begin(), done.end(), [](const auto& one) {
      return !one && one.error().code != ErrorCode::kCancelled;
    });
    return Failed(why == done.end() ? Error{ErrorCode::kCancelled, "interrupted"} : why->error());
  }

  Result<std::string> KeepOne(size_t part, Yielder* yielder) const {
    ATHANOR_TRY(const FileStamp now, StampOf(fd_));
    if (now != kept_.stamp) return Fail(ErrorCode::kCorrupt, "the file changed");
    JobFiles::Pace pace;
    if (yielder != nullptr) pace = [yielder](uint64_t bytes) { return yielder->Spend(bytes); };
    const uint64_t at = part * part_bytes_;
    const uint64_t bytes = PartSize(kept_.stamp.size, part_bytes_, part);
    if (sink_.files == nullptr) return NamePart(fd_, at, bytes, pace);
    ATHANOR_TRY(BlobRef stored, sink_.files->Put(Shelf::kParts, fd_, at, bytes, pace));
    return std::move(stored.sha256);
  }

  Status Failed(Error error) {
    if (error.code == ErrorCode::kCorrupt) return Changed(name_, kept_);
    return Fail(std::move(error));
  }

  const int fd_;
  const std::string& name_;
  const uint64_t part_bytes_;
  const PartSink& sink_;
  KeptFile& kept_;
};

}  // namespace

Status KeepFile(int dir_fd, const std::string& name, uint64_t part_bytes, const PartSink& sink,
                KeptFile& kept) {
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
  ATHANOR_CHECK_OK(Parts(fd->get(), name, part_bytes, sink, kept).Keep());
  ATHANOR_TRY(const FileStamp now, StampOf(fd->get()));
  if (now != kept.stamp) return Changed(name, kept);
  kept.complete = true;
  return Ok();
}

}  // namespace athanor
