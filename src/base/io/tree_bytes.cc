#include "base/io/tree_bytes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/io/fd.h"

namespace athanor {
namespace {

// Looked at by name within the open folder: of a million paths the walk would be most of the work.
uint64_t FolderBytes(UniqueFd folder, const std::vector<std::string>& leave) {
  DIR* const entries = ::fdopendir(folder.get());
  if (entries == nullptr) return 0;
  const int fd = folder.release();  // closed with `entries`
  uint64_t bytes = 0;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || std::ranges::find(leave, name) != leave.end()) continue;
    struct stat info {};
    const bool known = entry->d_type == DT_DIR;
    if (!known && ::fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (known || S_ISDIR(info.st_mode)) {
      UniqueFd inner(::openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (inner) bytes += FolderBytes(std::move(inner), {});
    } else if (S_ISREG(info.st_mode)) {
      bytes += static_cast<uint64_t>(info.st_size);
    }
  }
  ::closedir(entries);
  return bytes;
}

}  // namespace

uint64_t TreeBytes(const std::string& path, const std::vector<std::string>& leave) {
  UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder ? FolderBytes(std::move(folder), leave) : 0;
}

}  // namespace athanor
