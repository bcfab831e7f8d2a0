#include "base/io/unnamed_file.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/io/files.h"

namespace athanor {
namespace {

constexpr size_t kPiece = 64u << 20;

Status CopyAll(int from, int to) {
  for (off_t at = 0;;) {
    const ssize_t n = ::sendfile(to, from, &at, kPiece);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("copy a file", errno);
    if (n == 0) break;
  }
  if (::fdatasync(to) != 0) return FailErrno("sync a file", errno);
  return Ok();
}

}  // namespace

Result<UniqueFd> UnnamedFile(const std::string& dir) {
  UniqueFd file(::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  // Which error means "not supported" depends on the file system (EOPNOTSUPP, EISDIR, EINVAL,
  // ENOSYS), so the only test is whether the other way works.
  std::string path = JoinPath(dir, ".unnamed-XXXXXX");
  file.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return FailErrno("make a temporary file in " + dir, errno);
  if (::unlink(path.c_str()) != 0) return FailErrno("remove " + path, errno);
  return file;
}

Status NameFile(int fd, int dir_fd, const std::string& name) {
  if (::fdatasync(fd) != 0) return FailErrno("sync a file", errno);
  const std::string self = "/proc/self/fd/" + std::to_string(fd);
  if (::linkat(AT_FDCWD, self.c_str(), dir_fd, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return Ok();
  if (errno == EEXIST) return FailErrno("name a file", errno, ErrorCode::kConflict);
  // A file that once had a name cannot get another one, and a file system without links cannot give
  // one.
  UniqueFd out(::openat(dir_fd, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!out) {
    return FailErrno("name a file", errno,
                     errno == EEXIST ? ErrorCode::kConflict : ErrorCode::kUnavailable);
  }
  auto copied = CopyAll(fd, out.get());
  if (!copied.ok()) ::unlinkat(dir_fd, name.c_str(), 0);
  return copied;
}

}  // namespace athanor
