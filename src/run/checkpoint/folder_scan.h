// What lies in a script's checkpoint directory now, and who still writes to it.
// Only looks: nothing is opened but folders. Threads: each call stands alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/held_folder.h"
#include "base/result.h"

namespace athanor {

// Changes whenever the content may have: a writer can set back the times it likes,
// but not ctime.
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
  uint32_t mode = 0;     // permission bits; 0 of a link
  int64_t born_ns = 0;   // 0: the file system does not tell
  std::string link;      // target of a symbolic link that stays inside
  bool operator==(const ScannedFile&) const = default;
};

struct FolderScan {
  std::map<std::string, ScannedFile> files;  // by name beneath the folder
  std::vector<std::string> left_out;         // "name: why"; temporary names are not told
};

// Regular files and links in `dir` and its sub-folders. Temporary names, and all below a
// folder so named, are left out. A folder that is not there is empty; what is removed
// meanwhile is not there. kDenied: a link has taken the folder's place.
Result<FolderScan> ScanFolder(const HeldFolder& dir);

// *.tmp *.part *.partial *.swp .~* *~: names under which programs write what they rename
// when it is whole.
bool IsTemporaryName(std::string_view base_name);
// Logs and event files, which are appended to as long as the script runs: they must not
// keep a checkpoint waiting.
bool IsJournalName(std::string_view base_name);

// Those of `files` (device, inode) that one of the processes has open, or mapped shared,
// for writing. Processes that are gone or not ours to look into count as having none.
using FileKey = std::pair<uint64_t, uint64_t>;
std::vector<FileKey> OpenForWriting(const std::vector<int>& pids, std::vector<FileKey> files,
                                    const std::string& proc = "/proc");

}  // namespace athanor
