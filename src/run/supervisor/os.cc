#include "run/supervisor/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>

namespace athanor::supervisor {
namespace {

int64_t Now(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

std::string ReadFd(int fd, size_t limit, int* error) {
  std::string text;
  char buffer[16384];
  *error = 0;
  while (text.size() <= limit) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) break;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      *error = errno;
      break;
    }
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

int64_t WallMs() { return Now(CLOCK_REALTIME); }
int64_t BoottimeMs() { return Now(CLOCK_BOOTTIME); }

Result<std::string> ReadWhole(const std::string& path, size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open " + path, errno);
  int error = 0;
  std::string text = ReadFd(fd.get(), limit, &error);
  if (error != 0) return FailErrno("read " + path, error);
  if (text.size() > limit) return Fail(ErrorCode::kInvalid, path + " is too large");
  return text;
}

std::string ReadWholeAt(int dir_fd, const char* name) {
  const UniqueFd fd(::openat(dir_fd, name, O_RDONLY | O_CLOEXEC));
  int error = 0;
  return fd ? ReadFd(fd.get(), 1 << 20, &error) : std::string();
}

bool WriteWhole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Result<RecordFile> RecordFile::Open(const std::string& path, int64_t reserve) {
  RecordFile file;
  file.path_ = path;
  const size_t slash = path.rfind('/');
  file.name_ = path.substr(slash + 1);
  const std::string dir = slash == 0 ? "/" : path.substr(0, slash);
  file.dir_.reset(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.dir_) return FailErrno("open " + dir, errno);
  if (reserve > 0) {
    file.reserved_.reset(::openat(file.dir_.get(), (file.name_ + ".tmp").c_str(),
                                  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.reserved_) return FailErrno("create " + path + ".tmp", errno);
    // Not every file system can; then the record simply competes for space.
    (void)::fallocate(file.reserved_.get(), 0, 0, reserve);
  }
  return file;
}

bool RecordFile::FolderGone() const {
  struct stat info {};
  return ::fstat(dir_.get(), &info) == 0 && info.st_nlink == 0;
}

void RecordFile::ShrinkReserve(int64_t keep) {
  if (reserved_) (void)!::ftruncate(reserved_.get(), static_cast<off_t>(keep));
}

Status RecordFile::Replace(std::string_view bytes, bool sync) {
  const std::string temporary = name_ + ".tmp";
  UniqueFd fd = std::move(reserved_);
  if (!fd) {
    fd.reset(::openat(dir_.get(), temporary.c_str(),
                      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  }
  if (!fd) return FailErrno("create " + path_ + ".tmp", errno);
  if (!WriteWhole(fd.get(), bytes) ||
      ::ftruncate(fd.get(), static_cast<off_t>(bytes.size())) != 0 ||
      (sync && ::fsync(fd.get()) != 0)) {
    return FailErrno("write " + path_ + ".tmp", errno);
  }
  if (::renameat(dir_.get(), temporary.c_str(), dir_.get(), name_.c_str()) != 0) {
    return FailErrno("rename to " + path_, errno);
  }
  if (sync && ::fsync(dir_.get()) != 0) return FailErrno("sync the folder of " + path_, errno);
  return Ok();
}

}  // namespace athanor::supervisor
