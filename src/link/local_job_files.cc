#include "link/local_job_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "base/exec/mutex.h"
#include "base/ids.h"
#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/text/text.h"
#include "link/job_dir.h"

namespace athanor {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr uint64_t kSmall = 256 << 10;
constexpr std::string_view kEarlier = "earlier/";
// Beginning of the names of files that are not complete yet.
constexpr std::string_view kUnfinished = ".part-";

constexpr std::array<std::string_view, 5> kWritable = {
    job_dir::kEvents, job_dir::kCapture, job_dir::kStacks, job_dir::kMembers, job_dir::kValues};

bool IsUnfinished(std::string_view name) {
  return StartsWith(name, kUnfinished) ||
         name.find("/" + std::string(kUnfinished)) != std::string_view::npos;
}

// The folder that an entry is in.
Result<UniqueFd> OpenFolderOf(int root, const std::string& name) {
  const auto slash = name.rfind('/');
  if (slash != std::string::npos) {
    return OpenBeneath(root, name.substr(0, slash), O_RDONLY | O_DIRECTORY);
  }
  UniqueFd same(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  if (!same) return FailErrno("open the job's folder", errno);
  return same;
}

// From `from` at `offset` to the end of it, to the current place of `to`.
Status CopyRest(int from, int to, const std::string& name) {
  off_t at = 0;
  for (;;) {
    const ssize_t n = ::copy_file_range(from, &at, to, nullptr, 1u << 30, 0);
    if (n > 0) continue;
    if (n == 0) break;
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
      return FailErrno("write " + name, errno);
    }
    break;
  }
  // The kernel also says 0 for files that it cannot copy by itself, such as those of /proc.
  std::string buffer(256 << 10, '\0');
  for (;;) {
    const ssize_t n = ::pread(from, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read for " + name, errno);
    if (n == 0) return Ok();
    ATHANOR_CHECK_OK(WriteAll(to, {buffer.data(), static_cast<size_t>(n)}));
    at += n;
  }
}

// A file without a name that was made for this: it gets one, and no byte is copied. None: it is not
// such a file, or lies elsewhere.
std::optional<Result<BlobRef>> TakeWhole(const BlobStore& store, int fd, uint64_t bytes) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || info.st_nlink != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != bytes) {
    return std::nullopt;
  }
  const std::string path = store.unfinished_dir() + "/whole-" + NewUlid().ToString();
  const std::string from = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return std::nullopt;
  }
  auto writer = store.Continue(path);
  if (!writer) return std::nullopt;
  return writer->Commit();
}

// What is there already is not written again.
Result<BlobRef> PutSmall(const BlobStore& store, int fd, uint64_t offset, uint64_t bytes,
                         const JobFiles::Pace& pace) {
  std::string all(bytes, '\0');
  for (size_t done = 0; done < all.size();) {
    const ssize_t got =
        ::pread(fd, all.data() + done, all.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", errno);
    if (got == 0) return Fail(ErrorCode::kCorrupt, "the file became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  if (pace && !all.empty() && !pace(bytes)) return Fail(ErrorCode::kCancelled, "interrupted");
  return store.Put(all);
}

// A file without a name gets one, as TakeWhole does it; false: it was not such a file.
bool NameWhole(int fd, int dir, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || info.st_nlink != 0 || !S_ISREG(info.st_mode)) return false;
  const std::string from = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, from.c_str(), dir, name.c_str(), AT_SYMLINK_FOLLOW) != 0) return false;
  (void)::fchmod(fd, 0644);
  return true;
}

}  // namespace

Status CheckEntryName(const std::string& name, bool to_write) {
  ATHANOR_CHECK_OK(CheckNameBeneath(name));
  std::string_view rest = name;
  const bool earlier = StartsWith(rest, kEarlier);
  if (earlier) rest.remove_prefix(kEarlier.size());
  const std::string_view top = rest.substr(0, rest.find('/'));
  // Hosts but the first have captures of their own: "capture.algo-2".
  const bool own =
      !earlier && (std::find(kWritable.begin(), kWritable.end(), top) != kWritable.end() ||
                   StartsWith(top, std::string(job_dir::kCapture) + "."));
  const bool known = own || (!to_write && top == job_dir::kManifests);
  if (known && !IsUnfinished(name)) return Ok();
  return Fail(ErrorCode::kDenied, std::string("an agent may not ") +
                                      (to_write ? "write " : "read ") + Printable(name) +
                                      " of its job");
}

Result<std::unique_ptr<LocalJobFiles>> LocalJobFiles::Open(Options options) {
  ATHANOR_TRY(auto blobs, BlobStore::Open(options.blob_dir));
  return std::unique_ptr<LocalJobFiles>(new LocalJobFiles(std::move(options), std::move(blobs)));
}

// Nothing here waits for a server.
std::unique_ptr<JobFiles> LocalJobFiles::Until(int /*cancel_fd*/, Millis /*patience*/) const {
  return std::unique_ptr<JobFiles>(new LocalJobFiles(options_, blobs_));
}

Result<BlobStore> LocalJobFiles::StoreOf(Shelf shelf, bool to_write) const {
  switch (shelf) {
    case Shelf::kBlobs:
      return blobs_;
    case Shelf::kParts: {
      const MutexLock lock(mutex_);
      if (!parts_) {
        ATHANOR_TRY(parts_, BlobStore::Open(JoinPath(options_.job_dir, job_dir::kParts)));
      }
      return *parts_;
    }
    case Shelf::kEarlierParts:
      break;
  }
  if (to_write || options_.earlier_dir.empty()) {
    return Fail(ErrorCode::kDenied, options_.earlier_dir.empty()
                                        ? "this job does not continue from another one"
                                        : "the checkpoints of another job are read only");
  }
  return BlobStore::Open(JoinPath(options_.earlier_dir, job_dir::kParts));
}

Result<CheckpointStore> LocalJobFiles::Checkpoints() const {
  ATHANOR_TRY(auto parts, StoreOf(Shelf::kParts, true));
  return CheckpointStore::Open(JoinPath(options_.job_dir, job_dir::kManifests), std::move(parts),
                               options_.shared_dir);
}

Result<std::vector<bool>> LocalJobFiles::Has(Shelf shelf, const std::vector<BlobRef>& blobs) {
  ATHANOR_TRY(const auto store, StoreOf(shelf, false));
  std::vector<bool> there;
  there.reserve(blobs.size());
  for (const auto& blob : blobs) {
    there.push_back(store.Read(blob) && (shelf != Shelf::kBlobs || store.Use(blob.sha256)));
  }
  return there;
}

Result<UniqueFd> LocalJobFiles::Get(Shelf shelf, const std::string& sha256) {
  ATHANOR_TRY(const auto store, StoreOf(shelf, false));
  return store.Read(sha256);
}

Result<BlobRef> LocalJobFiles::Put(Shelf shelf, int fd, uint64_t offset, uint64_t bytes,
                                   const Pace& pace) {
  ATHANOR_TRY(const auto store, StoreOf(shelf, true));
  if (offset == 0) {
    if (auto taken = TakeWhole(store, fd, bytes)) return *taken;
  }
  if (bytes <= kSmall) return PutSmall(store, fd, offset, bytes, pace);
  ATHANOR_TRY(auto writer, store.NewBlob());
  std::string buffer(std::clamp<uint64_t>(bytes, 1, kPiece), '\0');
  for (uint64_t done = 0; done < bytes;) {
    const size_t want = std::min<uint64_t>(buffer.size(), bytes - done);
    const ssize_t got = ::pread(fd, buffer.data(), want, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("read", errno);
    if (got == 0) return Fail(ErrorCode::kCorrupt, "the file became shorter while it was read");
    ATHANOR_CHECK_OK(writer.Write({buffer.data(), static_cast<size_t>(got)}));
    done += static_cast<uint64_t>(got);
    if (pace && !pace(static_cast<uint64_t>(got))) {
      return Fail(ErrorCode::kCancelled, "interrupted");
    }
  }
  return writer.Commit();
}

Result<std::vector<JobEntry>> LocalJobFiles::List(const std::string& folder) {
  ATHANOR_CHECK_OK(CheckEntryName(folder, false));
  const bool earlier = StartsWith(folder, kEarlier);
  std::vector<JobEntry> entries;
  if (earlier && options_.earlier_dir.empty()) return entries;
  const auto root = OpenDir(earlier ? options_.earlier_dir : options_.job_dir);
  if (!root && root.error().code == ErrorCode::kNotFound) return entries;
  if (!root) return Fail(root.error());
  const auto dir = OpenBeneath(root->get(), earlier ? folder.substr(kEarlier.size()) : folder,
                               O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().code == ErrorCode::kNotFound) return entries;
  if (!dir) return Fail(dir.error());
  ATHANOR_TRY(auto names, NamesBelow(dir->get()));
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    struct stat info {};
    if (IsUnfinished(name) ||
        ::fstatat(dir->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    entries.push_back({folder + "/" + name, static_cast<uint64_t>(info.st_size)});
  }
  return entries;
}

Result<UniqueFd> LocalJobFiles::Read(const std::string& name) {
  ATHANOR_CHECK_OK(CheckEntryName(name, false));
  const bool earlier = StartsWith(name, kEarlier);
  if (earlier && options_.earlier_dir.empty()) {
    return Fail(ErrorCode::kNotFound, "this job does not continue from another one");
  }
  ATHANOR_TRY(const auto root, OpenDir(earlier ? options_.earlier_dir : options_.job_dir));
  ATHANOR_TRY(auto file, OpenBeneath(root.get(), earlier ? name.substr(kEarlier.size()) : name,
                                     O_RDONLY | O_NONBLOCK));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return FailErrno("stat " + name, errno);
  if (!S_ISREG(info.st_mode)) return Fail(ErrorCode::kNotFound, Printable(name) + " is no file");
  return file;
}

Status LocalJobFiles::Replace(const std::string& name, int fd) {
  ATHANOR_CHECK_OK(CheckEntryName(name, true));
  ATHANOR_CHECK_OK(MakeDirs(options_.job_dir));
  ATHANOR_TRY(const auto root, OpenDir(options_.job_dir));
  ATHANOR_CHECK_OK(MakeParentsBeneath(root.get(), name, 0755));
  ATHANOR_TRY(const auto dir, OpenFolderOf(root.get(), name));
  const std::string unfinished = std::string(kUnfinished) + NewUlid().ToString();
  Status done;
  if (!NameWhole(fd, dir.get(), unfinished)) {
    ATHANOR_TRY(const auto made,
                OpenBeneath(dir.get(), unfinished, O_WRONLY | O_CREAT | O_EXCL, 0644));
    done = CopyRest(fd, made.get(), name);
  }
  const std::string base = BaseName(name);
  if (done.ok() && ::renameat(dir.get(), unfinished.c_str(), dir.get(), base.c_str()) != 0) {
    done = FailErrno("replace " + name, errno);
  }
  if (!done.ok()) ::unlinkat(dir.get(), unfinished.c_str(), 0);
  return done;
}

Result<uint64_t> LocalJobFiles::Append(const std::string& name, uint64_t offset,
                                       std::string_view bytes) {
  ATHANOR_CHECK_OK(CheckEntryName(name, true));
  ATHANOR_CHECK_OK(MakeDirs(options_.job_dir));
  ATHANOR_TRY(const auto root, OpenDir(options_.job_dir));
  ATHANOR_CHECK_OK(MakeParentsBeneath(root.get(), name, 0755));
  const int flags = O_WRONLY | O_NONBLOCK | (offset == 0 ? O_CREAT : 0);
  auto file = OpenBeneath(root.get(), name, flags, 0644);
  const auto shorter = [&](uint64_t size) {
    return Fail(ErrorCode::kConflict, Printable(name) + " has " + std::to_string(size) +
                                          " bytes, not " + std::to_string(offset));
  };
  if (!file && file.error().code == ErrorCode::kNotFound) return shorter(0);
  ATHANOR_TRY(const auto fd, std::move(file));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return FailErrno("stat " + name, errno);
  if (static_cast<uint64_t>(info.st_size) < offset) {
    return shorter(static_cast<uint64_t>(info.st_size));
  }
  uint64_t at = offset;
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno("write " + name, errno);
    at += static_cast<uint64_t>(put);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  if (static_cast<uint64_t>(info.st_size) > at &&
      ::ftruncate(fd.get(), static_cast<off_t>(at)) != 0) {
    return FailErrno("cut " + name, errno);
  }
  return at;
}

Status LocalJobFiles::Remove(const std::string& name) {
  ATHANOR_CHECK_OK(CheckEntryName(name, true));
  const auto root = OpenDir(options_.job_dir);
  if (!root && root.error().code == ErrorCode::kNotFound) return Ok();
  if (!root) return Fail(root.error());
  const auto dir = OpenFolderOf(root->get(), name);
  if (!dir && dir.error().code == ErrorCode::kNotFound) return Ok();
  if (!dir) return Fail(dir.error());
  return RemoveTree("/proc/self/fd/" + std::to_string(dir->get()) + "/" + BaseName(name));
}

Result<CheckpointInfo> LocalJobFiles::Commit(const CheckpointManifest& manifest) {
  ATHANOR_TRY(auto store, Checkpoints());
  CheckpointManifest mine = manifest;
  mine.info.attempt = options_.attempt;
  // An agent that did not hear the answer asks again.
  ATHANOR_TRY(const auto entries, List(job_dir::kManifests));
  CheckpointId last;
  for (const auto& entry : entries) {
    const std::string name = BaseName(entry.name);
    const auto id = CheckpointId::Parse(name.substr(0, name.find('.')));
    if (id && id->attempt == options_.attempt) last = std::max(last, *id);
  }
  if (last.sequence > 0) {
    if (const auto before = store.Load(last.ToString());
        before && before->info.at == mine.info.at && before->files == mine.files) {
      return before->info;
    }
  }
  return store.Commit(std::move(mine));
}

Status LocalJobFiles::Tend(const CheckpointCare& care) {
  ATHANOR_TRY(auto store, Checkpoints());
  ATHANOR_CHECK_OK(store.Fence(options_.attempt));
  if (care.keep != nullptr) {
    ATHANOR_TRY([[maybe_unused]] const auto removed, store.ApplyKeep(*care.keep, care.value_of));
  }
  if (!care.needed) return Ok();
  return store.DropUnnamedParts(
      options_.attempt, [&](const std::string& sha256) { return care.needed->contains(sha256); });
}

}  // namespace athanor
