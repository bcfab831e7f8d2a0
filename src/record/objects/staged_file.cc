#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/exec/mutex.h"
#include "base/io/files.h"
#include "record/append_file.h"
#include "record/objects/directory_object_store.h"
#include "record/objects/object_index.h"

namespace athanor {
namespace {

constexpr uint64_t kHashAhead = 1 << 20;  // bytes worth a separate task
constexpr size_t kHashPiece = 256 << 10;
constexpr uint64_t kFlushAhead = 8 << 20;  // bytes worth a separate request to the disk

// The folder, and with it those with the same beginning: ids end in any two of these letters, and
// syncing `data` for each of the thousand would make the first objects of a new store slow.
Status MakeFolders(const std::string& data, const std::string& folder) {
  constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
  ATHANOR_CHECK_OK(MakeDirs(folder));
  const std::string begin = folder.substr(0, folder.size() - 1);
  for (const char letter : kLetters) {
    const std::string beside = begin + letter;
    if (::mkdir(beside.c_str(), 0700) != 0 && errno != EEXIST) {
      return FailErrno("create " + beside, errno);
    }
  }
  return SyncFolder(data);
}

}  // namespace

// Digests of a file that is still growing. The caller of CatchUp computes them; nothing waits for
// bytes.
struct StagedFile::Hashing {
  UniqueFd fd;
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> seen{0};  // hashed so far
  std::atomic<bool> scheduled{false};
  Mutex mutex;
  Digester digester GUARDED_BY(mutex);
  std::atomic<uint64_t> flushed{0};  // on their way to the disk, so that the sync finds little
  Status failed GUARDED_BY(mutex);

  Hashing(UniqueFd file, const DigestPlan& plan) : fd(std::move(file)), digester(plan) {}

  void CatchUp() {
    MutexLock lock(mutex);
    thread_local std::string buffer(kHashPiece, '\0');
    while (failed.ok() && seen < written) {
      const size_t want = std::min<uint64_t>(buffer.size(), written - seen);
      const ssize_t got = ::pread(fd.get(), buffer.data(), want, static_cast<off_t>(seen.load()));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        failed = FailErrno("read back what was written", got < 0 ? errno : EIO);
        return;
      }
      digester.Update({buffer.data(), static_cast<size_t>(got)});
      seen += static_cast<uint64_t>(got);
      if (seen - flushed >= kFlushAhead) FlushAhead();
    }
  }

  // The disk starts writing while the digests are computed. Not a guarantee (Sync is): a failure
  // shows there.
  void FlushAhead() {
    const uint64_t until = written;
    ::sync_file_range(fd.get(), static_cast<off_t>(flushed), static_cast<off_t>(until - flushed),
                      SYNC_FILE_RANGE_WRITE);
    flushed = until;
  }
};

StagedFile::StagedFile(std::string dir, std::string id, std::shared_ptr<Hashing> hashing,
                       Pool* hashers)
    : dir_(std::move(dir)), id_(std::move(id)), hashing_(std::move(hashing)), hashers_(hashers) {}

Result<std::unique_ptr<StagedFile>> StagedFile::Make(ObjectIndex& index, const DigestPlan& plan) {
  const std::string id = index.NewId();
  const std::string path = index.dir() + "/tmp/" + id;
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return FailErrno("create " + path, errno);
  return std::unique_ptr<StagedFile>(new StagedFile(
      index.dir(), id, std::make_shared<Hashing>(std::move(fd), plan), index.hashers()));
}

StagedFile::~StagedFile() {
  if (kept_) return;
  ::unlink((placed_ ? ObjectFilePath(dir_, id_) : dir_ + "/tmp/" + id_).c_str());
}

Status StagedFile::Write(std::string_view bytes) {
  ATHANOR_CHECK_OK(WriteAll(hashing_->fd.get(), bytes));
  hashing_->written += bytes.size();
  if (!hashers_ || hashing_->written - hashing_->seen < kHashAhead ||
      hashing_->scheduled.exchange(true)) {
    return Ok();
  }
  const bool taken = hashers_->Submit([hashing = hashing_] {
    hashing->CatchUp();
    hashing->scheduled = false;
  });
  if (!taken) hashing_->scheduled = false;
  return Ok();
}

uint64_t StagedFile::size() const { return hashing_->written; }

Result<Digests> StagedFile::Finish() {
  hashing_->FlushAhead();
  hashing_->CatchUp();
  MutexLock lock(hashing_->mutex);
  if (!hashing_->failed.ok()) return tl::unexpected(hashing_->failed.error());
  return hashing_->digester.Finish();
}

Status StagedFile::Move() {
  const std::string target = ObjectFilePath(dir_, id_);
  const std::string from = dir_ + "/tmp/" + id_;
  // Before the sync, so that one commit of the file system's journal has both.
  int moved = ::rename(from.c_str(), target.c_str());
  if (moved != 0 && errno == ENOENT) {
    ATHANOR_CHECK_OK(MakeFolders(dir_ + "/data", DirName(target)));
    moved = ::rename(from.c_str(), target.c_str());
  }
  if (moved != 0) return FailErrno("move an object into place", errno);
  placed_ = true;
  return Ok();
}

// The folder is not synced, which would cost a second flush of the disk: together with a new file's
// bytes, its name is stored, the old or the new one, and Open moves files that still have the old
// one.
Status StagedFile::Sync() {
  if (::fdatasync(hashing_->fd.get()) != 0) return FailErrno("sync an object", errno);
  return Ok();
}

}  // namespace athanor
