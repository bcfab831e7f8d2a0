#include "record/objects/blob_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/exec/clock.h"
#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"

namespace athanor {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr size_t kCopyBytes = 256 * 1024;
constexpr auto kStaleAfter = hours(24);
// Longer than any file system keeps a rename in memory only.
constexpr auto kSurelyOnDisk = seconds(120);
// A use this soon after the last is not recorded: most blobs are requested many times per minute.
constexpr auto kNotedFor = std::chrono::minutes(10);

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Status CheckName(std::string_view sha256) {
  if (sha256.size() == 64 && IsLowerHex(sha256)) return Ok();
  return Fail(Error{ErrorCode::kInvalid,
                    "not the name of a blob: '" + Printable(sha256.substr(0, 80)) + "'"}
                  .Why("a blob is named by the 64 hex digits of its sha256"));
}

int64_t MillisOf(const timespec& time) { return time.tv_sec * 1000LL + time.tv_nsec / 1'000'000; }

int64_t AgeMillis(const timespec& time) { return SystemClock().Wall().ms - MillisOf(time); }

void RemoveStale(const std::string& folder) {
  const auto names = ListDir(folder);
  if (!names) return;
  for (const auto& name : *names) {
    const std::string path = JoinPath(folder, name);
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (AgeMillis(info.st_mtim) > Millis(kStaleAfter).count()) ::unlink(path.c_str());
  }
}

tl::unexpected<Error> NotAsNamed(std::string_view sha256, std::string why) {
  return Fail(
      Error{ErrorCode::kCorrupt, fmt::format("blob {} is damaged", sha256)}.Why(std::move(why)));
}

}  // namespace

// Which of the 256 folders this process has synced into `dir`: another process may have made a
// folder and not synced it yet.
struct BlobStore::Shards {
  std::array<std::atomic<bool>, 256> on_disk{};
};

struct BlobStore::Writer::State {
  BlobStore store;
  std::string path;
  UniqueFd fd;
  Sha256 hash;
  uint64_t bytes = 0;
  bool direct = false;  // written around Write(): the hash must be made from the file
  bool closed = false;  // committed, or a write failed

  ~State() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

Result<BlobStore> BlobStore::Open(std::string dir) {
  ATHANOR_CHECK_OK(MakeDirs(dir));
  const std::string temporaries = JoinPath(dir, "tmp");
  ATHANOR_CHECK_OK(MakeDirs(temporaries));
  RemoveStale(temporaries);
  return BlobStore(std::move(dir), std::make_shared<Shards>());
}

std::string BlobStore::PathOf(std::string_view sha256) const {
  return fmt::format("{}/{}/{}", dir_, sha256.substr(0, 2), sha256);
}

bool BlobStore::Has(std::string_view sha256) const {
  return CheckName(sha256).ok() && Exists(PathOf(sha256));
}

// Each lock has its own open file: threads of one process must exclude each other, too.
Result<UniqueFd> BlobStore::LockUses(int kind) const {
  const std::string path = JoinPath(dir_, "lock");
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return FailErrno("open " + path, errno);
  while (::flock(lock.get(), kind) != 0) {
    if (errno != EINTR) return FailErrno("lock " + path, errno);
  }
  return lock;
}

bool BlobStore::Use(std::string_view sha256) const {
  if (!CheckName(sha256).ok()) return false;
  const std::string path = PathOf(sha256);
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return false;
  if (AgeMillis(there.st_mtim) < Millis(kNotedFor).count()) return true;
  const auto lock = LockUses(LOCK_SH);
  return lock && ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
}

Result<bool> BlobStore::RemoveUnused(std::string_view sha256, WallTime since, bool dry_run) const {
  ATHANOR_CHECK_OK(CheckName(sha256));
  ATHANOR_TRY(const auto lock, LockUses(LOCK_EX));
  const std::string path = PathOf(sha256);
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0 || MillisOf(there.st_mtim) >= since.ms) return false;
  if (!dry_run && ::unlink(path.c_str()) != 0) return FailErrno("remove " + path, errno);
  return true;
}

Result<UniqueFd> BlobStore::Read(std::string_view sha256) const {
  ATHANOR_CHECK_OK(CheckName(sha256));
  auto fd = OpenToRead(PathOf(sha256));
  if (!fd && fd.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, fmt::format("no blob {}", sha256));
  }
  return fd;
}

Result<UniqueFd> BlobStore::Read(const BlobRef& ref) const {
  ATHANOR_TRY(UniqueFd fd, Read(std::string_view(ref.sha256)));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return FailErrno("stat blob " + ref.sha256, errno);
  if (static_cast<uint64_t>(info.st_size) != ref.bytes) {
    return NotAsNamed(ref.sha256, fmt::format("{} bytes instead of {}", info.st_size, ref.bytes));
  }
  return fd;
}

Status BlobStore::Verify(std::string_view sha256) const {
  ATHANOR_TRY(const UniqueFd fd, Read(sha256));
  ATHANOR_TRY(const std::string found, Sha256File(fd.get()));
  if (found != sha256) return NotAsNamed(sha256, "its bytes have the sha256 " + found);
  return Ok();
}

Status BlobStore::SyncShard(std::string_view sha256) const {
  ATHANOR_CHECK_OK(SyncFolder(fmt::format("{}/{}", dir_, sha256.substr(0, 2))));
  const size_t shard = std::stoul(std::string(sha256.substr(0, 2)), nullptr, 16);
  if (shards_->on_disk[shard].load(std::memory_order_acquire)) return Ok();
  ATHANOR_CHECK_OK(SyncFolder(dir_));
  shards_->on_disk[shard].store(true, std::memory_order_release);
  return Ok();
}

// Gives the finished temporary its name, unless the blob is there already.
Result<BlobRef> BlobStore::Settle(Writer::State& state, const std::string& sha256,
                                  uint64_t bytes) const {
  const std::string path = PathOf(sha256);
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && static_cast<uint64_t>(there.st_size) == bytes &&
      Use(sha256)) {
    // Its writer may be between rename and fsync, or may have died there.
    if (AgeMillis(there.st_ctim) < Millis(kSurelyOnDisk).count()) {
      ATHANOR_CHECK_OK(SyncShard(sha256));
    }
    return BlobRef{sha256, bytes};
  }
  if (::fsync(state.fd.get()) != 0) return FailErrno("fsync " + state.path, errno);
  const std::string shard = DirName(path);
  if (::mkdir(shard.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailErrno("make folder " + shard, errno);
  }
  if (::rename(state.path.c_str(), path.c_str()) != 0) {
    return FailErrno("rename to " + path, errno);
  }
  state.path.clear();
  ATHANOR_CHECK_OK(SyncShard(sha256));
  return BlobRef{sha256, bytes};
}

Result<BlobRef> BlobStore::Put(std::string_view bytes) const {
  const std::string sha256 = Sha256Hex(bytes);
  struct stat there {};
  if (::stat(PathOf(sha256).c_str(), &there) == 0 &&
      static_cast<uint64_t>(there.st_size) == bytes.size() &&
      AgeMillis(there.st_ctim) >= Millis(kSurelyOnDisk).count() && Use(sha256)) {
    return BlobRef{sha256, bytes.size()};
  }
  ATHANOR_TRY(Writer writer, NewBlob());
  ATHANOR_CHECK_OK(writer.Write(bytes));
  return writer.Commit(sha256);
}

Result<BlobRef> BlobStore::PutFd(int fd) const {
  ATHANOR_TRY(Writer writer, NewBlob());
  std::string buffer(kCopyBytes, '\0');
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      return FailErrno("read", errno);
    }
    if (got == 0) return writer.Commit();
    ATHANOR_CHECK_OK(writer.Write(std::string_view(buffer).substr(0, static_cast<size_t>(got))));
  }
}

Result<BlobStore::Writer> BlobStore::NewBlob() const {
  std::string path = JoinPath(dir_, "tmp/blob-XXXXXX");
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return FailErrno("create " + path, errno);
  return Writer(std::unique_ptr<Writer::State>(
      new Writer::State{*this, std::move(path), std::move(fd), Sha256()}));
}

Result<BlobStore::Writer> BlobStore::Continue(std::string path) const {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return FailErrno("open " + path, errno);
  Writer writer(std::unique_ptr<Writer::State>(
      new Writer::State{*this, std::move(path), std::move(fd), Sha256()}));
  writer.state_->direct = true;
  return writer;
}

Status BlobStore::Remove(std::string_view sha256) const {
  ATHANOR_CHECK_OK(CheckName(sha256));
  const std::string path = PathOf(sha256);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return FailErrno("remove " + path, errno);
  return Ok();
}

Status BlobStore::ForEach(const std::function<void(const BlobRef&)>& visit) const {
  ATHANOR_TRY(const auto shards, ListDir(dir_));
  for (const auto& shard : shards) {
    if (shard.size() != 2 || !IsLowerHex(shard)) continue;
    ATHANOR_TRY(const auto names, ListDir(JoinPath(dir_, shard)));
    for (const auto& name : names) {
      struct stat info {};
      if (!CheckName(name).ok() || ::stat(PathOf(name).c_str(), &info) != 0) continue;
      visit(BlobRef{name, static_cast<uint64_t>(info.st_size)});
    }
  }
  return Ok();
}

BlobStore::Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlobStore::Writer::Writer(Writer&&) noexcept = default;
BlobStore::Writer::~Writer() = default;

Status BlobStore::Writer::Write(std::string_view bytes) {
  if (auto wrote = WriteAll(state_->fd.get(), bytes); !wrote.ok()) {
    state_->closed = true;
    return wrote;
  }
  state_->hash.Update(bytes);
  state_->bytes += bytes.size();
  return Ok();
}

int BlobStore::Writer::fd() const {
  state_->direct = true;
  return state_->fd.get();
}

Result<BlobRef> BlobStore::Writer::Commit(std::string_view expected) {
  State& state = *state_;
  if (std::exchange(state.closed, true)) {
    return Fail(ErrorCode::kBug, "a blob is committed twice, or after a failed write");
  }
  if (!expected.empty()) ATHANOR_CHECK_OK(CheckName(expected));
  struct stat info {};
  if (::fstat(state.fd.get(), &info) != 0) return FailErrno("stat " + state.path, errno);
  std::string sha256;
  if (state.direct) {
    if (::lseek(state.fd.get(), 0, SEEK_SET) < 0) return FailErrno("seek " + state.path, errno);
    ATHANOR_TRY(sha256, Sha256File(state.fd.get()));
  } else {
    sha256 = state.hash.HexDigest();
    if (static_cast<uint64_t>(info.st_size) != state.bytes) {
      return NotAsNamed(
          sha256, fmt::format("{} bytes were written, {} are there", state.bytes, info.st_size));
    }
  }
  if (!expected.empty() && sha256 != expected) {
    return NotAsNamed(expected, "its bytes have the sha256 " + sha256);
  }
  return state.store.Settle(state, sha256, static_cast<uint64_t>(info.st_size));
}

}  // namespace athanor
