#include "run/checkpoint/restore.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include "base/exec/mutex.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/io/held_folder.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// Small enough that what was read is still in the processor's cache when it is hashed and written.
constexpr size_t kChunk = 256 * 1024;
constexpr size_t kThreads = 2;

bool IsDamage(ErrorCode code) {
  return code == ErrorCode::kCorrupt || code == ErrorCode::kNotFound;
}

tl::unexpected<Error> Damaged(const CheckpointManifest& manifest, const std::string& file,
                              std::string why, ErrorCode code = ErrorCode::kCorrupt) {
  return Fail(Error{code,
                    fmt::format("checkpoint {} cannot be restored: file '{}' is damaged",
                                manifest.info.id, Printable(file)),
                    "ath checkpoints JOB"}
                  .Why(std::move(why)));
}

timespec TimeOf(int64_t ns) {
  constexpr int64_t kGiga = 1'000'000'000;
  int64_t seconds = ns / kGiga;
  if (ns % kGiga < 0) --seconds;
  return {seconds, static_cast<long>(ns - seconds * kGiga)};
}

// Reads one part at `at` of `from`, hashes it and, with `to` given, writes it there.
Result<std::string> PassPart(int from, uint64_t from_at, uint64_t bytes, int to, uint64_t to_at,
                             std::string& buffer) {
  Sha256 hash;
  for (uint64_t done = 0; done < bytes;) {
    const size_t want = std::min<uint64_t>(buffer.size(), bytes - done);
    const ssize_t got = ::pread(from, buffer.data(), want, static_cast<off_t>(from_at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", errno);
    if (got == 0) return Fail(ErrorCode::kCorrupt, "it is shorter than it was");
    const auto size = static_cast<size_t>(got);
    hash.Update({buffer.data(), size});
    for (size_t wrote = 0; to >= 0 && wrote < size;) {
      const ssize_t put = ::pwrite(to, buffer.data() + wrote, size - wrote,
                                   static_cast<off_t>(to_at + done + wrote));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return FailErrno("write", errno);
      wrote += static_cast<size_t>(put);
    }
    done += size;
  }
  return hash.HexDigest();
}

// Copies, or with a shared manifest only checks, all parts by a few threads.
class PartCopier {
 public:
  PartCopier(const RestoreSource& source, const CheckpointManifest& manifest, int dir_fd)
      : source_(source), manifest_(manifest), dir_fd_(dir_fd) {
    for (size_t file = 0; file < manifest.files.size(); ++file) {
      for (size_t part = 0; part < manifest.files[file].parts.size(); ++part) {
        pieces_.emplace_back(file, part);
      }
    }
  }

  Status Run() {
    std::vector<std::thread> helpers;
    for (size_t i = 1; i < std::min(kThreads, pieces_.size()); ++i) {
      helpers.emplace_back([this] { Work(); });
    }
    Work();
    for (auto& helper : helpers) helper.join();
    const MutexLock lock(mutex_);
    if (failed_) return Fail(*failed_);
    return Ok();
  }

 private:
  void Work() {
    std::string buffer(kChunk, '\0');
    for (;;) {
      const size_t index = next_.fetch_add(1);
      if (index >= pieces_.size() || stop_) return;
      const auto [file, part] = pieces_[index];
      if (auto copied = Copy(manifest_.files[file], part, buffer); !copied.ok()) {
        stop_ = true;
        const MutexLock lock(mutex_);
        if (!failed_) failed_ = std::move(copied).error();
        return;
      }
    }
  }

  // The bytes of a part, which are as many as they should be.
  Result<UniqueFd> Part(const std::string& sha256, uint64_t bytes) {
    ATHANOR_TRY(auto fd, source_.files.Get(PartsOf(source_.folder), sha256));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return FailErrno("stat", errno);
    if (static_cast<uint64_t>(info.st_size) == bytes) return fd;
    return Fail(ErrorCode::kCorrupt,
                fmt::format("part {} has {} bytes instead of {}", sha256, info.st_size, bytes));
  }

  Status Copy(const CheckpointFile& file, size_t part, std::string& buffer) {
    const uint64_t at = part * manifest_.part_bytes;
    const uint64_t bytes = PartSize(file.size, manifest_.part_bytes, part);
    Result<std::string> found;
    if (manifest_.shared) {
      auto from = OpenBeneath(dir_fd_, file.name, O_RDONLY | O_NONBLOCK);
      if (!from) return Damaged(manifest_, file.name, from.error().what, from.error().code);
      found = PassPart(from->get(), at, bytes, -1, 0, buffer);
    } else {
      auto from = Part(file.parts[part], bytes);
      if (!from && !IsDamage(from.error().code)) return tl::unexpected(std::move(from).error());
      if (!from) return Damaged(manifest_, file.name, from.error().what, from.error().code);
      ATHANOR_TRY(const UniqueFd to, OpenBeneath(dir_fd_, file.name, O_WRONLY));
      found = PassPart(from->get(), 0, bytes, to.get(), at, buffer);
    }
    if (!found && found.error().code != ErrorCode::kCorrupt) {
      found.error().what = Printable(file.name) + ": " + found.error().what;
      return tl::unexpected(std::move(found).error());
    }
    if (!found) return Damaged(manifest_, file.name, found.error().what);
    if (*found != file.parts[part]) {
      return Damaged(manifest_, file.name,
                     fmt::format("part {} has the sha256 {} instead of {}", part + 1, *found,
                                 file.parts[part]));
    }
    return Ok();
  }

  const RestoreSource& source_;
  const CheckpointManifest& manifest_;
  const int dir_fd_;
  std::vector<std::pair<size_t, size_t>> pieces_;  // file, part
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::optional<Error> failed_ GUARDED_BY(mutex_);
};

Status MakeFiles(const CheckpointManifest& manifest, int dir_fd) {
  for (const auto& file : manifest.files) {
    ATHANOR_CHECK_OK(MakeParentsBeneath(dir_fd, file.name, 0755));
    if (file.is_link()) continue;
    ATHANOR_TRY(const UniqueFd fd,
                OpenBeneath(dir_fd, file.name, O_WRONLY | O_CREAT | O_EXCL, 0600));
    if (::ftruncate(fd.get(), static_cast<off_t>(file.size)) != 0) {
      return FailErrno("make " + Printable(file.name), errno);
    }
  }
  return Ok();
}

// After the bytes: writing moves the times, and nothing may be written through a link.
Status FinishFiles(const CheckpointManifest& manifest, int dir_fd) {
  for (const auto& file : manifest.files) {
    if (file.is_link()) continue;
    ATHANOR_TRY(const UniqueFd fd, OpenBeneath(dir_fd, file.name, O_WRONLY));
    const timespec times[2] = {TimeOf(file.mtime_ns), TimeOf(file.mtime_ns)};
    if (::futimens(fd.get(), times) != 0) {
      return FailErrno("set time of " + Printable(file.name), errno);
    }
    if (::fchmod(fd.get(), file.mode) != 0) {
      return FailErrno("set mode of " + Printable(file.name), errno);
    }
  }
  for (const auto& file : manifest.files) {
    if (!file.is_link()) continue;
    UniqueFd holder;
    int parent = dir_fd;
    if (const std::string folder = DirName(file.name); folder != ".") {
      ATHANOR_TRY(holder, OpenBeneath(dir_fd, folder, O_PATH | O_DIRECTORY));
      parent = holder.get();
    }
    const std::string base = BaseName(file.name);
    if (::symlinkat(file.link.c_str(), parent, base.c_str()) != 0) {
      return FailErrno("link " + Printable(file.name), errno);
    }
    const timespec times[2] = {TimeOf(file.mtime_ns), TimeOf(file.mtime_ns)};
    (void)::utimensat(parent, base.c_str(), times, AT_SYMLINK_NOFOLLOW);
  }
  return Ok();
}

Status Empty(const std::string& dir, int dir_fd) {
  ATHANOR_TRY(const auto names, ListDirAt(dir_fd));
  for (const auto& name : names) ATHANOR_CHECK_OK(RemoveTree(JoinPath(dir, name)));
  return Ok();
}

Status PutBack(const RestoreSource& from, const CheckpointManifest& manifest,
               const std::string& dir) {
  if (manifest.shared) {
    ATHANOR_CHECK_OK(CheckWhole(from.files, from.folder, manifest, from.shared_dir));
    ATHANOR_TRY(const UniqueFd fd, OpenDir(from.shared_dir));
    return PartCopier(from, manifest, fd.get()).Run();
  }
  ATHANOR_CHECK_OK(MakeDirs(dir, 0755));
  ATHANOR_TRY(const auto held, HeldFolder::At(dir));
  ATHANOR_TRY(const UniqueFd fd, held.Open());
  ATHANOR_TRY(const auto present, ListDirAt(fd.get()));
  if (!present.empty()) {
    return Fail(ErrorCode::kConflict,
                fmt::format("a checkpoint is only restored into an empty folder: {} holds '{}'",
                            dir, Printable(present.front())));
  }
  const auto all = [&]() -> Status {
    ATHANOR_CHECK_OK(MakeFiles(manifest, fd.get()));
    ATHANOR_CHECK_OK(PartCopier(from, manifest, fd.get()).Run());
    return FinishFiles(manifest, fd.get());
  };
  auto done = all();
  if (!done.ok()) (void)Empty(dir, fd.get()).ok();
  return done;
}

}  // namespace

Result<Restored> RestoreCheckpoint(const RestoreSource& from, const std::string& id,
                                   const std::string& dir, std::string before) {
  Restored restored;
  if (!id.empty()) {
    ATHANOR_TRY(const CheckpointManifest manifest, LoadCheckpoint(from.files, from.folder, id));
    ATHANOR_CHECK_OK(PutBack(from, manifest, dir));
    restored.checkpoint = manifest.info;
    return restored;
  }
  for (;;) {
    ATHANOR_TRY(auto found, NewestCheckpoint(from.files, from.folder, before, from.shared_dir));
    for (auto& damage : found.passed_over) restored.passed_over.push_back(std::move(damage));
    if (!found.manifest) return restored;
    auto done = PutBack(from, *found.manifest, dir);
    if (done.ok()) {
      restored.checkpoint = found.manifest->info;
      return restored;
    }
    // A full disk is not a fault of the checkpoint; an older one would not help.
    if (!IsDamage(done.error().code)) return tl::unexpected(std::move(done).error());
    before = found.manifest->info.id;
    restored.passed_over.push_back({before, std::move(done).error()});
  }
}

}  // namespace athanor
