#include "feed/channel.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/io/files.h"

namespace athanor {
namespace {

Status CopyBytes(int in, int out, uint64_t size, const std::string& path) {
  if (::ioctl(out, FICLONE, in) == 0) return Ok();
  uint64_t left = size;
  while (left > 0) {
    ssize_t n = ::copy_file_range(in, nullptr, out, nullptr, left, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
      break;
    if (n < 0) return FailErrno("copy " + path, errno);
    if (n == 0) return Ok();  // it shrank meanwhile; the rest was copied
    left -= static_cast<uint64_t>(n);
  }
  std::string buffer(left > 0 ? 1 << 20 : 0, '\0');
  while (left > 0) {
    ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n < 0) return FailErrno("read " + path, errno);
    if (n == 0) break;
    ATHANOR_CHECK_OK(WriteAll(out, {buffer.data(), static_cast<size_t>(n)}));
    left -= std::min<uint64_t>(left, static_cast<uint64_t>(n));
  }
  return Ok();
}

Status CopyFileAt(int from_dir, const char* name, int to_dir, const std::string& path,
                  ChannelUse& use) {
  UniqueFd in(::openat(from_dir, name, O_RDONLY | O_CLOEXEC));
  if (!in) return FailErrno("open " + path, errno);
  struct stat info {};
  if (::fstat(in.get(), &info) != 0) return FailErrno("stat " + path, errno);
  UniqueFd out(::openat(to_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                        info.st_mode & 0777));
  if (!out) return FailErrno("create a copy of " + path, errno);
  ATHANOR_CHECK_OK(CopyBytes(in.get(), out.get(), static_cast<uint64_t>(info.st_size), path));
  struct timespec times[2] = {info.st_atim, info.st_mtim};
  ::futimens(out.get(), times);
  ++use.files;
  use.bytes += static_cast<uint64_t>(info.st_size);
  return Ok();
}

Status CopyTree(int from, int to, const std::string& path, int depth, ChannelUse& use) {
  if (depth > 100) return Fail(ErrorCode::kInvalid, path + " is nested too deeply");
  DIR* dir = ::fdopendir(::dup(from));
  if (!dir) return FailErrno("list " + path, errno);
  Status status;
  while (auto* entry = ::readdir(dir)) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    auto below = path + "/" + name;
    struct stat info {};
    if (::fstatat(from, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      status = FailErrno("stat " + below, errno);
    } else if (S_ISDIR(info.st_mode)) {
      ::mkdirat(to, name.c_str(), 0777);
      UniqueFd sub_from(
          ::openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      UniqueFd sub_to(::openat(to, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
      status = sub_from && sub_to ? CopyTree(sub_from.get(), sub_to.get(), below, depth + 1, use)
                                  : Status(FailErrno("open " + below, errno));
    } else if (S_ISLNK(info.st_mode)) {
      std::string target(4096, '\0');
      ssize_t n = ::readlinkat(from, name.c_str(), target.data(), target.size());
      if (n > 0) {
        target.resize(static_cast<size_t>(n));
        if (::symlinkat(target.c_str(), to, name.c_str()) != 0 && errno != EEXIST) {
          status = FailErrno("link " + below, errno);
        }
      }
    } else if (S_ISREG(info.st_mode)) {
      status = CopyFileAt(from, name.c_str(), to, below, use);
    }
    if (!status) break;
  }
  ::closedir(dir);
  return status;
}

}  // namespace

Result<ChannelUse> CopyChannel(const std::string& from, const std::string& to) {
  struct stat info {};
  if (::stat(from.c_str(), &info) != 0) return FailErrno("data folder " + from, errno);
  ATHANOR_CHECK_OK(MakeDirs(to, 0755));
  ATHANOR_TRY(auto to_dir, OpenDir(to));
  ChannelUse use;
  if (S_ISDIR(info.st_mode)) {
    ATHANOR_TRY(auto from_dir, OpenDir(from));
    ATHANOR_CHECK_OK(CopyTree(from_dir.get(), to_dir.get(), from, 0, use));
  } else {
    ATHANOR_TRY(auto from_dir, OpenDir(DirName(from)));
    ATHANOR_CHECK_OK(CopyFileAt(from_dir.get(), BaseName(from).c_str(), to_dir.get(), from, use));
  }
  return use;
}

}  // namespace athanor
