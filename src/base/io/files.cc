#include "base/io/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>

#include "base/exec/serving_thread.h"
#include "base/ids.h"
#include "base/text/text.h"

namespace athanor {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using UniqueDir = std::unique_ptr<DIR, CloseDir>;

// For messages: the names may come from outside.
std::string Shown(std::string_view path) { return Printable(path.substr(0, 512)); }

bool IsDotOrDotDot(const char* name) {
  return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

// Entries of an open folder. Takes its own descriptor, so `dir_fd` keeps its offset.
Result<std::vector<std::string>> EntriesOf(int dir_fd, const std::string& shown) {
  UniqueFd copy(::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy) return FailErrno("open folder " + shown, errno);
  UniqueDir dir(::fdopendir(copy.get()));
  if (!dir) return FailErrno("open folder " + shown, errno);
  copy.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) return FailErrno("list folder " + shown, errno);
      return names;
    }
    if (!IsDotOrDotDot(entry->d_name)) names.emplace_back(entry->d_name);
  }
}

Status Replace(const std::string& path, std::string_view bytes, mode_t mode, bool durable) {
  const std::string temporary =
      JoinPath(DirName(path), "." + BaseName(path).substr(0, 200) + "." + RandomHex(6) + ".tmp");
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return FailErrno("create " + Shown(temporary), errno);
  const auto give_up = [&](tl::unexpected<Error> error) {
    ::unlink(temporary.c_str());
    return Status(std::move(error));
  };
  if (auto wrote = WriteAll(fd.get(), bytes); !wrote.ok()) {
    wrote.error().what = Shown(path) + ": " + wrote.error().what;
    return give_up(Fail(std::move(wrote).error()));
  }
  if (durable && ::fsync(fd.get()) != 0) {
    return give_up(FailErrno("fsync " + Shown(temporary), errno));
  }
  // close() is where some network file systems report a failed write.
  if (::close(fd.release()) != 0) return give_up(FailErrno("close " + Shown(temporary), errno));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return give_up(FailErrno("rename to " + Shown(path), errno));
  }
  if (!durable) return Ok();
  ATHANOR_TRY(const UniqueFd folder, OpenDir(DirName(path)));
  if (::fsync(folder.get()) != 0) return FailErrno("fsync " + Shown(DirName(path)), errno);
  return Ok();
}

// Removes what is below one folder. Descriptors and stack are bounded for any depth of the tree:
// past kMaxDepth a sub-folder is moved up into the top one.
class TreeRemover {
 public:
  TreeRemover(int top_fd, std::string shown) : top_fd_(top_fd), shown_(std::move(shown)) {}

  Status Run() {
    // Folders that were moved up appear in the next round.
    do {
      moved_ = false;
      ATHANOR_CHECK_OK(Empty(top_fd_, 0));
    } while (moved_);
    return Ok();
  }

 private:
  static constexpr int kMaxDepth = 64;

  Status Empty(int dir_fd, int depth) {
    ATHANOR_TRY(const auto names, EntriesOf(dir_fd, shown_));
    for (const auto& name : names) ATHANOR_CHECK_OK(RemoveEntry(dir_fd, name, depth));
    return Ok();
  }

  Status RemoveEntry(int dir_fd, const std::string& name, int depth) {
    if (::unlinkat(dir_fd, name.c_str(), 0) == 0 || errno == ENOENT) return Ok();
    const int unlink_error = errno;
    UniqueFd child = OpenChild(dir_fd, name);
    if (!child) return FailErrno("remove " + shown_ + "/.../" + Shown(name), unlink_error);
    if (depth >= kMaxDepth) {
      const std::string moved_name = ".removing-" + RandomHex(8);
      if (::renameat(dir_fd, name.c_str(), top_fd_, moved_name.c_str()) != 0) {
        return FailErrno("remove " + shown_ + "/.../" + Shown(name), errno);
      }
      moved_ = true;
      return Ok();
    }
    ATHANOR_CHECK_OK(Empty(child.get(), depth + 1));
    if (::unlinkat(dir_fd, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      return FailErrno("remove " + shown_ + "/.../" + Shown(name), errno);
    }
    return Ok();
  }

  // A folder that its owner may not enter (chmod 000, read-only package trees) gets the needed
  // permissions first.
  static UniqueFd OpenChild(int dir_fd, const std::string& name) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    UniqueFd child(::openat(dir_fd, name.c_str(), kFlags));
    if (!child && errno == EACCES) {
      (void)!::fchmodat(dir_fd, name.c_str(), 0700, 0);
      child.reset(::openat(dir_fd, name.c_str(), kFlags));
    }
    struct stat info {};
    if (child && ::fstat(child.get(), &info) == 0 && (info.st_mode & S_IRWXU) != S_IRWXU) {
      ::fchmod(child.get(), 0700);
    }
    return child;
  }

  int top_fd_;
  std::string shown_;
  bool moved_ = false;
};

}  // namespace

Result<std::string> ReadAll(int fd, size_t limit) {
  std::string bytes;
  struct stat info {};
  size_t step = 16 * 1024;
  // One byte over the known size, so that the read that finds the end does not have to grow the
  // buffer.
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    step = std::min<size_t>(static_cast<size_t>(info.st_size), 64u << 20) + 1;
  }
  for (;;) {
    const size_t before = bytes.size();
    const size_t room = limit == SIZE_MAX ? step : std::min(step, limit - before + 1);
    bytes.resize(before + room);
    const ssize_t got = ::read(fd, bytes.data() + before, room);
    bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0) {
      if (errno == EINTR) continue;
      return FailErrno("read", errno);
    }
    if (got == 0) {
      NoteRead(bytes.size());
      return bytes;
    }
    if (bytes.size() > limit) {
      return Fail(ErrorCode::kInvalid, "more than the limit of " + HumanBytes(limit));
    }
    step = std::clamp<size_t>(bytes.size(), 16 * 1024, 16u << 20);
  }
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open " + Shown(path), errno);
  auto bytes = ReadAll(fd.get(), limit);
  if (!bytes) bytes.error().what = Shown(path) + ": " + bytes.error().what;
  return bytes;
}

Status WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return FailErrno("write", errno);
    }
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
  return Ok();
}

Status WriteFileAtomic(const std::string& path, std::string_view bytes, mode_t mode) {
  return Replace(path, bytes, mode, true);
}

Status ReplaceFile(const std::string& path, std::string_view bytes, mode_t mode) {
  return Replace(path, bytes, mode, false);
}

Status MakeDirs(const std::string& path, mode_t mode) {
  if (path.empty()) return Fail(ErrorCode::kInvalid, "make folder: the path is empty");
  for (size_t end = 1;; ++end) {
    end = std::min(path.find('/', end), path.size());
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      // A read-only or foreign parent may refuse this although the folder exists.
      const int why = errno;
      struct stat info {};
      if (::stat(part.c_str(), &info) != 0) return FailErrno("make folder " + Shown(part), why);
    }
    if (end == path.size()) break;
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return FailErrno("make folder " + Shown(path), errno);
  if (!S_ISDIR(info.st_mode)) return FailErrno("make folder " + Shown(path), ENOTDIR);
  return Ok();
}

Status RemoveTree(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Ok();
  const int unlink_error = errno;
  if (unlink_error != EISDIR && unlink_error != EPERM) {
    return FailErrno("remove " + Shown(path), unlink_error);
  }
  UniqueFd top(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top && errno == EACCES) {
    ::chmod(path.c_str(), 0700);
    top.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!top) return FailErrno("remove " + Shown(path), errno);
  struct stat info {};
  if (::fstat(top.get(), &info) == 0 && (info.st_mode & S_IRWXU) != S_IRWXU) {
    ::fchmod(top.get(), 0700);
  }
  ATHANOR_CHECK_OK(TreeRemover(top.get(), Shown(path)).Run());
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) {
    return FailErrno("remove " + Shown(path), errno);
  }
  return Ok();
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Result<std::vector<std::string>> ListDir(const std::string& path) {
  ATHANOR_TRY(const UniqueFd dir, OpenDir(path));
  ATHANOR_TRY(auto names, EntriesOf(dir.get(), Shown(path)));
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::string>> ListDirAt(int dir_fd) {
  ATHANOR_TRY(auto names, EntriesOf(dir_fd, "(open)"));
  NoteRead(names.size() * sizeof(dirent));
  std::sort(names.begin(), names.end());
  return names;
}

Result<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return FailErrno("free space of " + Shown(path), errno);
  return uint64_t{info.f_bavail} * info.f_frsize;
}

namespace {

tl::unexpected<Error> Unusable(std::string_view name, const char* why) {
  return Fail(Error{ErrorCode::kInvalid, "unusable name '" + Shown(name) + "'"}.Why(why));
}

}  // namespace

Status CheckRelativeName(std::string_view name) {
  if (name.find('\\') != std::string_view::npos) return Unusable(name, "it holds a backslash");
  return CheckNameBeneath(name);
}

Status CheckNameBeneath(std::string_view name) {
  const auto refuse = [whole = name](const char* why) { return Unusable(whole, why); };
  if (name.empty()) return refuse("it is empty");
  if (name.size() > 4096) return refuse("it is longer than 4,096 bytes");
  if (name.front() == '/') return refuse("it is absolute");
  if (name.find('\0') != std::string_view::npos) return refuse("it holds a NUL byte");
  while (true) {
    const size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty()) return refuse("it has an empty component");
    if (part == "." || part == "..") return refuse("it has a '.' or '..' component");
    if (part.size() > NAME_MAX) return refuse("it has a component of more than 255 bytes");
    if (slash == std::string_view::npos) return Ok();
    name.remove_prefix(slash + 1);
  }
}

Result<UniqueFd> OpenDir(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno("open folder " + Shown(path), errno);
  return fd;
}

Result<UniqueFd> OpenBeneath(int dir_fd, const std::string& name, int flags, mode_t mode) {
  ATHANOR_CHECK_OK(CheckNameBeneath(name));
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  // openat2 refuses a mode when nothing can be created.
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0;; ++tries) {
    const long fd = ::syscall(SYS_openat2, dir_fd, name.c_str(), &how, sizeof(how));
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    // EAGAIN: something was renamed during the walk; the kernel asks for another try.
    if (errno == EINTR || (errno == EAGAIN && tries < 100)) continue;
    const int why = errno;
    if (why == ELOOP || why == EXDEV) {
      return Fail(Error{ErrorCode::kDenied, "open " + Shown(name) + ": refused"}.Why(
          "the path goes through a link or leaves its folder"));
    }
    return FailErrno("open " + Shown(name), why);
  }
}

Status MakeParentsBeneath(int dir_fd, const std::string& name, mode_t mode) {
  ATHANOR_CHECK_OK(CheckNameBeneath(name));
  UniqueFd holder;
  int at = dir_fd;
  size_t start = 0;
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', start)) {
    const std::string part = name.substr(start, slash - start);
    if (::mkdirat(at, part.c_str(), mode) != 0 && errno != EEXIST) {
      return FailErrno("make folder " + Shown(name.substr(0, slash)), errno);
    }
    ATHANOR_TRY(holder, OpenBeneath(at, part, O_PATH | O_DIRECTORY));
    at = holder.get();
    start = slash + 1;
  }
  return Ok();
}

std::string JoinPath(std::string_view a, std::string_view b) {
  if (a.empty()) return std::string(b);
  if (b.empty()) return std::string(a);
  std::string path(a);
  if (path.back() != '/') path += '/';
  path += b.front() == '/' ? b.substr(1) : b;
  return path;
}

std::string BaseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  if (path == "/") return "/";
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string DirName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  while (slash > 0 && path[slash - 1] == '/') --slash;
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

}  // namespace athanor
