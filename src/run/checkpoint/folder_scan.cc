#include "run/checkpoint/folder_scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr int kMaxDepth = 64;

int64_t Nanoseconds(const statx_timestamp& time) {
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

std::optional<std::string> ReadLinkAt(int dir_fd, const char* name) {
  char target[PATH_MAX];
  const ssize_t length = ::readlinkat(dir_fd, name, target, sizeof(target));
  if (length <= 0 || length == sizeof(target)) return std::nullopt;
  return std::string(target, static_cast<size_t>(length));
}

class Scanner {
 public:
  explicit Scanner(FolderScan& out) : out_(out) {}

  Status Folder(int dir_fd, const std::string& prefix, int depth) {
    ATHANOR_TRY(const auto names, ListDirAt(dir_fd));
    for (const auto& base : names) {
      if (IsTemporaryName(base)) continue;
      ATHANOR_CHECK_OK(Entry(dir_fd, base, prefix + base, depth));
    }
    return Ok();
  }

 private:
  Status Entry(int dir_fd, const std::string& base, const std::string& name, int depth) {
    struct statx info {};
    if (::statx(dir_fd, base.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME,
                &info) != 0) {
      if (errno == ENOENT) return Ok();
      return FailErrno("look at " + Printable(name), errno);
    }
    if (S_ISDIR(info.stx_mode)) return SubFolder(dir_fd, base, name, depth);
    if (auto usable = CheckRelativeName(name); !usable.ok()) {
      return LeaveOut(name, usable.error().why);
    }
    ScannedFile file;
    file.stamp = {makedev(info.stx_dev_major, info.stx_dev_minor), info.stx_ino, info.stx_size,
                  Nanoseconds(info.stx_mtime), Nanoseconds(info.stx_ctime)};
    if ((info.stx_mask & STATX_BTIME) != 0) file.born_ns = Nanoseconds(info.stx_btime);
    if (S_ISLNK(info.stx_mode)) {
      auto target = ReadLinkAt(dir_fd, base.c_str());
      if (!target) return Ok();
      if (!LinkStaysBeneath(name, *target)) {
        return LeaveOut(name, "it is a link that leads out of the folder");
      }
      file.link = std::move(*target);
      file.stamp.size = 0;
    } else if (S_ISREG(info.stx_mode)) {
      file.mode = info.stx_mode & 0777;
    } else {
      return LeaveOut(name, "it is neither a file nor a folder nor a link");
    }
    out_.files.emplace(name, std::move(file));
    return Ok();
  }

  Status SubFolder(int dir_fd, const std::string& base, const std::string& name, int depth) {
    if (depth == kMaxDepth) return LeaveOut(name, "it lies too deep");
    const UniqueFd child(
        ::openat(dir_fd, base.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!child) {
      if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return Ok();
      return FailErrno("open folder " + Printable(name), errno);
    }
    return Folder(child.get(), name + "/", depth + 1);
  }

  Status LeaveOut(const std::string& name, const std::string& why) {
    out_.left_out.push_back(Printable(name) + ": " + why);
    return Ok();
  }

  FolderScan& out_;
};

bool Writes(const std::string& proc, int pid, const std::string& number) {
  const auto text = ReadFile(fmt::format("{}/{}/fdinfo/{}", proc, pid, number), 64 * 1024);
  if (!text) return false;
  const size_t at = text->find("flags:");
  if (at == std::string::npos) return false;
  const unsigned long flags = std::strtoul(text->c_str() + at + 6, nullptr, 8);
  return (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
}

// Lines such as "7f..-7f.. rw-s 00000000 fe:00 1234   /path".
void SharedMappings(const std::string& proc, int pid, const std::vector<FileKey>& files,
                    std::vector<FileKey>& found) {
  const auto text = ReadFile(fmt::format("{}/{}/maps", proc, pid));
  if (!text) return;
  for (const auto& line : Split(*text, '\n')) {
    char mode[5] = {};
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), "%*s %4s %*s %x:%x %lu", mode, &major, &minor, &inode) != 4) {
      continue;
    }
    if (mode[1] != 'w' || mode[3] != 's') continue;
    const FileKey key{makedev(major, minor), inode};
    if (std::binary_search(files.begin(), files.end(), key)) found.push_back(key);
  }
}

}  // namespace

bool IsTemporaryName(std::string_view base_name) {
  for (const std::string_view end : {".tmp", ".part", ".partial", ".swp", "~"}) {
    if (EndsWith(base_name, end)) return true;
  }
  return StartsWith(base_name, ".~");
}

bool IsJournalName(std::string_view base_name) {
  for (const std::string_view end : {".log", ".jsonl", ".csv"}) {
    if (EndsWith(base_name, end)) return true;
  }
  return base_name.find(".tfevents.") != std::string_view::npos;
}

Result<FolderScan> ScanFolder(const HeldFolder& dir) {
  FolderScan scan;
  const auto fd = dir.Open();
  if (!fd) {
    if (fd.error().code == ErrorCode::kNotFound) return scan;
    return tl::unexpected(fd.error());
  }
  ATHANOR_CHECK_OK(Scanner(scan).Folder(fd->get(), "", 0));
  return scan;
}

std::vector<FileKey> OpenForWriting(const std::vector<int>& pids, std::vector<FileKey> files,
                                    const std::string& proc) {
  std::sort(files.begin(), files.end());
  std::vector<FileKey> found;
  for (const int pid : pids) {
    const std::string folder = fmt::format("{}/{}/fd", proc, pid);
    if (const auto numbers = ListDir(folder)) {
      for (const auto& number : *numbers) {
        struct stat info {};
        // Through the link: names may differ in the job's mount namespace, inodes do not.
        if (::stat((folder + "/" + number).c_str(), &info) != 0) continue;
        const FileKey key{info.st_dev, info.st_ino};
        if (std::binary_search(files.begin(), files.end(), key) && Writes(proc, pid, number)) {
          found.push_back(key);
        }
      }
    }
    SharedMappings(proc, pid, files, found);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace athanor
