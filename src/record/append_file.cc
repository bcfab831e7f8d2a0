#include "record/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

tl::unexpected<Error> FailWrite(const std::string& path, int error_number) {
  auto failed = FailErrno("write " + path, error_number);
  if (failed.value().code == ErrorCode::kExhausted) {
    failed.value().hint = "free some space there: df -h " + ShellQuote(DirName(path));
  }
  return failed;
}

// Flushing through a new descriptor is as good as through the one that wrote:
// both work on the inode, and an unreported write error is seen by the new one.
Status SyncPath(const std::string& path, int flags, int (*sync)(int)) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT) return Ok();
    return FailErrno("open " + path, errno);
  }
  if (sync(fd.get()) != 0) return FailWrite(path, errno);
  return Ok();
}

}  // namespace

Status AppendAt(const std::string& path, uint64_t at, std::string_view bytes) {
  UniqueFd fd;
  return AppendAt(fd, path, at, bytes);
}

Status AppendAt(UniqueFd& fd, const std::string& path, uint64_t at, std::string_view bytes) {
  struct stat info {};
  // Without a name, the file was removed or replaced by someone else.
  if (fd && (::fstat(fd.get(), &info) != 0 || info.st_nlink == 0)) fd.reset();
  if (!fd) {
    const int create = at == 0 ? O_CREAT : 0;
    fd = UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | create, 0600));
    if (!fd) return FailWrite(path, errno);
    if (::fstat(fd.get(), &info) != 0) return FailErrno("stat " + path, errno);
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  const auto end = static_cast<off_t>(at);
  if (size < at) {
    return Fail(Error{ErrorCode::kCorrupt, path + " has become shorter"}.Why(
        fmt::format("{} bytes were stored, {} are there", at, size)));
  }
  if (size > at && ::ftruncate(fd.get(), end) != 0) return FailWrite(path, errno);
  uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote =
        ::pwrite(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (wrote < 0) {
      if (errno == EINTR) continue;
      const int why = errno;
      // If this fails as well, the next AppendAt sees it by the size.
      [[maybe_unused]] const int cut = ::ftruncate(fd.get(), end);
      return FailWrite(path, why);
    }
    done += static_cast<uint64_t>(wrote);
  }
  return Ok();
}

void CutTo(const std::string& path, uint64_t length) {
  [[maybe_unused]] const int cut = ::truncate(path.c_str(), static_cast<off_t>(length));
}

Status SyncFileData(const std::string& path) { return SyncPath(path, O_RDONLY, ::fdatasync); }

Status SyncFolder(const std::string& path) {
  return SyncPath(path, O_RDONLY | O_DIRECTORY, ::fsync);
}

Result<UniqueFd> OpenToRead(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return FailErrno("open " + path, errno);
  return fd;
}

Result<std::string> ReadAt(int fd, uint64_t at, size_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(at + done));
    if (got < 0) {
      if (errno == EINTR) continue;
      return FailErrno("read", errno);
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace athanor
