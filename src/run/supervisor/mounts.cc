#include "run/supervisor/mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/io/fd.h"

namespace athanor::supervisor {
namespace {

constexpr size_t kMaxShadowEntries = 512;

std::string FdPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

std::string Reason(int error) { return std::strerror(error); }

bool IsDir(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
}

bool MountTmpfs(const std::string& at) {
  return ::mount("tmpfs", at.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") == 0;
}

// In a user namespace a remount must keep the flags its source had.
bool MakeReadOnly(const std::string& path) {
  struct statvfs info {};
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
  if (::statvfs(path.c_str(), &info) == 0) {
    if (info.f_flag & ST_NOSUID) flags |= MS_NOSUID;
    if (info.f_flag & ST_NODEV) flags |= MS_NODEV;
    if (info.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
    if (info.f_flag & ST_NOATIME) flags |= MS_NOATIME;
    if (info.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
    if (info.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  }
  return ::mount(nullptr, path.c_str(), nullptr, flags, nullptr) == 0;
}

bool Bind(int source_fd, const std::string& target) {
  return ::mount(FdPath(source_fd).c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) ==
         0;
}

bool CreateFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  return static_cast<bool>(fd);
}

struct ShadowEntry {
  std::string name;
  UniqueFd fd;
  std::string link;  // of a symbolic link
};

// The source of a mount. Opened before anything is covered: it may be below a hidden path.
struct Opened {
  UniqueFd source;
  UniqueFd lower;  // of an overlay, as `work`
  UniqueFd work;
  Status status = Ok();
};

Opened OpenParts(const MountPlan& mount) {
  Opened opened;
  const auto open = [&](const std::string& path, int flags) {
    UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC | flags));
    if (!fd && opened.status.ok()) opened.status = FailErrno("open " + path, errno);
    return fd;
  };
  opened.source = open(mount.source, 0);
  if (mount.lower.empty()) return opened;
  opened.lower = open(mount.lower, O_DIRECTORY);
  opened.work = open(mount.source + ".work", O_DIRECTORY);
  return opened;
}

// As the kernel sees it; the path itself where there is nothing yet.
std::string RealPath(const std::string& path) {
  char real[PATH_MAX];
  return ::realpath(path.c_str(), real) != nullptr ? std::string(real) : path;
}

class View {
 public:
  Status Build(const SupervisorPlan& plan, std::vector<std::string>* off);

 private:
  Status Hide(const std::string& path);
  Status MakeTarget(const std::string& target, bool directory);
  Status Shadow(const std::string& dir);
  Status MountOne(const MountPlan& mount, const Opened& opened);
  Status MountOverlay(const MountPlan& mount, const Opened& opened, const std::string& target);
  bool InOurTmpfs(const std::string& dir) const;

  std::vector<std::string> tmpfs_;  // where new entries do not reach the host
  std::vector<std::string> hidden_;
};

bool View::InOurTmpfs(const std::string& dir) const {
  const std::string real = RealPath(dir);
  for (const auto& root : tmpfs_) {
    if (real == root || real.compare(0, root.size() + 1, root + "/") == 0) return true;
  }
  return false;
}

Status View::Shadow(const std::string& dir) {
  std::vector<ShadowEntry> entries;
  DIR* listing = ::opendir(dir.c_str());
  if (listing == nullptr) return FailErrno("list " + dir, errno);
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    ShadowEntry kept;
    kept.name = name;
    kept.fd.reset(::openat(::dirfd(listing), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    char link[4096];
    const ssize_t n = ::readlinkat(::dirfd(listing), entry->d_name, link, sizeof link);
    if (n > 0) kept.link.assign(link, static_cast<size_t>(n));
    if (kept.fd) entries.push_back(std::move(kept));
  }
  ::closedir(listing);
  if (entries.size() > kMaxShadowEntries) {
    return Fail(ErrorCode::kExhausted, dir + " has more than 512 entries to show again");
  }
  if (!MountTmpfs(dir)) return FailErrno("mount a tmpfs on " + dir, errno);
  tmpfs_.push_back(RealPath(dir));
  for (const auto& entry : entries) {
    const std::string path = dir + "/" + entry.name;
    if (!entry.link.empty()) {
      (void)!::symlink(entry.link.c_str(), path.c_str());
      continue;
    }
    const bool made = IsDir(entry.fd.get()) ? ::mkdir(path.c_str(), 0755) == 0 : CreateFile(path);
    if (!made || !Bind(entry.fd.get(), path)) return FailErrno("show " + path + " again", errno);
  }
  return Ok();
}

Status View::MakeTarget(const std::string& target, bool directory) {
  struct stat info {};
  if (::stat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) == directory) return Ok();
    return Fail(ErrorCode::kConflict, target + (directory ? " is a file" : " is a directory"));
  }
  // Make the missing folders one by one from the deepest that exists.
  size_t slash = target.rfind('/');
  std::string existing = target.substr(0, slash);
  while (!existing.empty() && ::stat(existing.c_str(), &info) != 0) {
    slash = existing.rfind('/');
    existing = existing.substr(0, slash);
  }
  if (!existing.empty() && !InOurTmpfs(existing)) ATHANOR_CHECK_OK(Shadow(existing));
  size_t from = existing.size() + 1;
  while ((slash = target.find('/', from)) != target.npos) {
    const std::string folder = target.substr(0, slash);
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return FailErrno("make " + folder, errno);
    }
    from = slash + 1;
  }
  const bool made = directory ? ::mkdir(target.c_str(), 0755) == 0 : CreateFile(target);
  if (!made && errno != EEXIST) return FailErrno("make " + target, errno);
  return Ok();
}

// By descriptor, since a comma or colon in a path would end an option.
Status View::MountOverlay(const MountPlan& mount, const Opened& opened, const std::string& target) {
  const std::string options = "lowerdir=" + FdPath(opened.lower.get()) +
                              ",upperdir=" + FdPath(opened.source.get()) +
                              ",workdir=" + FdPath(opened.work.get());
  if (::mount("overlay", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return FailErrno("overlay " + mount.lower + " at " + target, errno);
  }
  return Ok();
}

Status View::MountOne(const MountPlan& mount, const Opened& opened) {
  std::string target = mount.target;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  ATHANOR_CHECK_OK(MakeTarget(target, IsDir(opened.source.get())));
  if (!mount.lower.empty()) return MountOverlay(mount, opened, target);
  if (!Bind(opened.source.get(), target)) {
    return FailErrno("bind " + mount.source + " to " + target, errno);
  }
  if (mount.read_only && !MakeReadOnly(target)) {
    return FailErrno("make " + target + " read-only", errno);
  }
  return Ok();
}

// What cannot be hidden must not be visible: then no script is started.
Status View::Hide(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Ok();
  if (!S_ISDIR(info.st_mode)) return Fail(ErrorCode::kConflict, path + " is not a directory");
  if (!MountTmpfs(path)) return FailErrno("hide " + path, errno);
  tmpfs_.push_back(RealPath(path));
  hidden_.push_back(path);
  return Ok();
}

Status View::Build(const SupervisorPlan& plan, std::vector<std::string>* off) {
  std::vector<Opened> opened;
  for (const auto& mount : plan.mounts) opened.push_back(OpenParts(mount));
  for (const auto& path : plan.hide) ATHANOR_CHECK_OK(Hide(path));
  for (size_t i = 0; i < plan.mounts.size(); ++i) {
    const MountPlan& mount = plan.mounts[i];
    Status made = opened[i].status.ok() ? MountOne(mount, opened[i]) : opened[i].status;
    if (made.ok()) continue;
    if (mount.required) return made;
    off->push_back("mount " + mount.target + ": " + made.error().what);
  }
  for (const auto& path : hidden_) {
    if (!MakeReadOnly(path)) return FailErrno("make " + path + " read-only", errno);
  }
  return Ok();
}

// The kernel accepts these from any process with the uid of root, whatever capabilities it lost:
// core_pattern names a program that runs outside, as root.
void LockKernelSettings(std::vector<std::string>* off) {
  for (const char* path : {"/proc/sys", "/proc/sysrq-trigger"}) {
    struct stat info {};
    if (::stat(path, &info) != 0) continue;
    if (::mount(path, path, nullptr, MS_BIND | MS_REC, nullptr) != 0 || !MakeReadOnly(path)) {
      off->push_back(std::string(path) + ": " + Reason(errno) +
                     "; a script of root's can write it");
    }
  }
}

}  // namespace

bool Namespaces::Parse(std::string_view text, Namespaces* namespaces) {
  *namespaces = Namespaces();
  if (text == "none") return true;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    bool* flag = name == "user"    ? &namespaces->user
                 : name == "pid"   ? &namespaces->pid
                 : name == "mount" ? &namespaces->mount
                 : name == "uts"   ? &namespaces->uts
                                   : nullptr;
    if (flag == nullptr) return false;
    *flag = true;
    if (comma == text.npos) return true;
    text.remove_prefix(comma + 1);
  }
}

Status EnterView(const SupervisorPlan& plan, const Namespaces& namespaces,
                 std::vector<std::string>* off) {
  if (!plan.hostname.empty()) {
    if (!namespaces.uts) {
      off->push_back("host name: no UTS namespace; the script sees the host's name");
    } else if (::sethostname(plan.hostname.data(), plan.hostname.size()) != 0) {
      off->push_back("host name: " + Reason(errno) + "; the script sees the host's name");
    }
  }
  if (!namespaces.mount) {
    for (const auto& mount : plan.mounts) {
      if (mount.required) {
        return Fail(ErrorCode::kUnavailable,
                    "mount " + mount.target + ": there is no mount namespace");
      }
      off->push_back("mount " + mount.target + ": no mount namespace; it is not provided");
    }
    for (const auto& path : plan.hide) {
      off->push_back("hidden path " + path + ": no mount namespace; the script can see it");
    }
    return Ok();
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return FailErrno("make mounts private", errno);
  }
  View view;
  ATHANOR_CHECK_OK(view.Build(plan, off));
  if (namespaces.pid &&
      ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    return FailErrno("mount /proc", errno);
  }
  if (namespaces.pid && !namespaces.user && ::geteuid() == 0) LockKernelSettings(off);
  return Ok();
}

}  // namespace athanor::supervisor
