// Hashes of files by their metadata, stored in a file between runs. A cache that cannot be read, or
// that belongs to another folder, is empty.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"

namespace athanor {

// What must be unchanged for the content to be unchanged.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStamp&) const = default;
  static FileStamp Of(const struct stat& info);
};

// Called once for each file of the folder, in the order of their paths: then a run without changes
// writes nothing.
class HashCache {
 public:
  // Nothing is read or written when `file` is empty.
  HashCache(std::string file, std::string_view dir);

  // What was found is also remembered for the next run. The text lives as long as this object.
  std::optional<std::string_view> Find(std::string_view path, const FileStamp& stamp);
  // Remembers it for the next run, unless it changed too shortly before `now`.
  void Keep(std::string_view path, const FileStamp& stamp, std::string_view sha256, WallTime now);
  // Writes what was found and added; the rest is dropped. A failure only costs time.
  void Save() const;

 private:
  struct Row {
    std::string_view path;
    std::string_view sha256;
    std::string_view whole;  // as it is in the file
    FileStamp stamp;
  };
  static bool ParseRow(std::string_view text, Row& row);
  void Load();

  std::string file_;
  std::string header_;
  std::string known_text_;
  std::vector<Row> known_;  // by path; they point into known_text_
  std::string kept_text_;
};

}  // namespace athanor
