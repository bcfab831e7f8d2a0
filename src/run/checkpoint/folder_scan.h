// What is in a script's checkpoint directory now, and who still writes to it. Read-only: only
// folders are opened. Threads: calls are independent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/io/held_folder.h"
#include "base/result.h"

namespace athanor {

// Changes whenever the content may have changed: a writer can set the other times back, but not
// ctime.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

struct ScannedFile {
  FileStamp stamp;
  uint32_t mode = 0;    // permission bits; 0 of a link
  int64_t born_ns = 0;  // 0: the file system does not say
  std::string link;     // target of a symbolic link that stays inside
  bool operator==(const ScannedFile&) const = default;
};

struct FolderScan {
  std::map<std::string, ScannedFile> files;  // by name beneath the folder
  std::vector<std::string> left_out;         // "name: why"; temporary names are not listed
};

// Regular files and links in `dir` and its sub-folders. Temporary names, and all below a folder so
// named, are left out. A missing folder is empty; files that are removed meanwhile are left out.
// kDenied: the folder was replaced by a link.
Result<FolderScan> ScanFolder(const HeldFolder& dir);

// *.tmp *.part *.partial *.swp .~* *~: names that programs use for files that they rename when they
// are complete.
bool IsTemporaryName(std::string_view base_name);
// Logs and event files, which are appended to while the script runs: they must not delay a
// checkpoint.
bool IsJournalName(std::string_view base_name);

// Those of `files` (device, inode) that one of the processes has open, or mapped shared, for
// writing. Processes that are gone, or that we may not inspect, count as having none.
using FileKey = std::pair<uint64_t, uint64_t>;
std::vector<FileKey> OpenForWriting(const std::vector<int>& pids, std::vector<FileKey> files,
                                    const std::string& proc = "/proc");

}  // namespace athanor
