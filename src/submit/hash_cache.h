// Hashes of files by what the kernel says about them, kept in a text file between
// runs. A cache that cannot be read, or of another folder, is an empty one.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"

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

class HashCache {
 public:
  // Nothing is read or written when `file` is empty.
  HashCache(std::string file, std::string dir);

  // nullptr when not known.
  const std::string* Find(const std::string& path, const FileStamp& stamp) const;
  // Remembers it for the next run, unless it changed too shortly before `now`.
  void Keep(const std::string& path, const FileStamp& stamp, const std::string& sha256,
            WallTime now);
  // Writes what was kept; what was not is forgotten. A failure only costs time.
  void Save() const;

 private:
  struct Row {
    FileStamp stamp;
    std::string sha256;
    bool operator==(const Row&) const = default;
  };
  void Load();

  std::string file_;
  std::string dir_;
  std::unordered_map<std::string, Row> known_;
  std::unordered_map<std::string, Row> kept_;
};

}  // namespace athanor
