#include "run/supervisor/mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace athanor::supervisor {
namespace {

constexpr size_t kMaxShadowEntries = 512;

std::string FdPath(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

std::string Reason(int error) {
  return std::strerror(error);
}

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

class View {
 public:
  Status Build(const SupervisorPlan& plan, std::vector<std::string>* off);

 private:
  Status MakeTarget(const std::string& target, bool directory);
  Status Shadow(const std::string& dir);
  Status MountOne(const MountPlan& mount, int source_fd);
  Status MountOverlay(const MountPlan& mount, int upper_fd, const std::string& target);
  bool InOurTmpfs(const std::string& dir) const;

  std::vector<std::string> tmpfs_;  // where new entries do not reach the host
  std::vector<std::string> hidden_;
};

bool View::InOurTmpfs(const std::string& dir) const {
  for (const auto& root : tmpfs_) {
    if (dir == root || dir.compare(0, root.size() + 1, root + "/") == 0) return true;
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
  tmpfs_.push_back(dir);
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
Status View::MountOverlay(const MountPlan& mount, int upper_fd, const std::string& target) {
  const UniqueFd lower(::open(mount.lower.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!lower) return FailErrno("open " + mount.lower, errno);
  const UniqueFd work(::open((mount.source + ".work").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!work) return FailErrno("open " + mount.source + ".work", errno);
  const std::string options = "lowerdir=" + FdPath(lower.get()) + ",upperdir=" + FdPath(upper_fd) +
                              ",workdir=" + FdPath(work.get());
  if (::mount("overlay", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return FailErrno("overlay " + mount.lower + " at " + target, errno);
  }
  return Ok();
}

Status View::MountOne(const MountPlan& mount, int source_fd) {
  std::string target = mount.target;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  ATHANOR_CHECK_OK(MakeTarget(target, IsDir(source_fd)));
  if (!mount.lower.empty()) return MountOverlay(mount, source_fd, target);
  if (!Bind(source_fd, target)) return FailErrno("bind " + mount.source + " to " + target, errno);
  if (mount.read_only && !MakeReadOnly(target)) {
    return FailErrno("make " + target + " read-only", errno);
  }
  return Ok();
}

Status View::Build(const SupervisorPlan& plan, std::vector<std::string>* off) {
  // Opened before anything is covered: a source may lie below a hidden path.
  std::vector<UniqueFd> sources;
  std::vector<int> errors;
  for (const auto& mount : plan.mounts) {
    sources.emplace_back(::open(mount.source.c_str(), O_PATH | O_CLOEXEC));
    errors.push_back(sources.back() ? 0 : errno);
  }
  for (const auto& path : plan.hide) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) continue;
    if (!S_ISDIR(info.st_mode) || !MountTmpfs(path)) {
      off->push_back("hidden path " + path + ": " +
                     (S_ISDIR(info.st_mode) ? Reason(errno) : "not a directory") +
                     "; the script can see it");
      continue;
    }
    tmpfs_.push_back(path);
    hidden_.push_back(path);
  }
  for (size_t i = 0; i < plan.mounts.size(); ++i) {
    const MountPlan& mount = plan.mounts[i];
    const Status made = errors[i] == 0 ? MountOne(mount, sources[i].get())
                                       : Status(FailErrno("open " + mount.source, errors[i]));
    if (made.ok()) continue;
    if (mount.required) return made;
    off->push_back("mount " + mount.target + ": " + made.error().what);
  }
  for (const auto& path : hidden_) (void)MakeReadOnly(path);
  return Ok();
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
  return Ok();
}

}  // namespace athanor::supervisor
