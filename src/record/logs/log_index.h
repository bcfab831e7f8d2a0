// The index of a job's log: 40 bytes per chunk, in the order of arrival, each with a checksum of
// itself (24 bits) and one of the chunk's bytes. Pure, except for names.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/logs/log_store.h"

namespace athanor {

// One stream of one process.
struct LogKey {
  uint32_t attempt = 1;
  uint32_t host = 0;
  uint32_t rank = 0;
  LogStream stream = LogStream::kStdout;

  auto operator<=>(const LogKey&) const = default;
  std::string FileName() const;  // a1-h0-r0-stdout.log
  static std::optional<LogKey> Parse(std::string_view file_name);
};

struct LogIndexEntry {
  LogKey key;
  int64_t wall_ms = 0;
  uint64_t offset = 0;
  uint32_t length = 0;  // 0: void, to be skipped
  uint32_t bytes_crc = 0;

  bool operator==(const LogIndexEntry&) const = default;
};

inline constexpr size_t kLogIndexEntryBytes = 40;
inline constexpr size_t kMaxLogChunk = 64 * 1024;  // a longer one gets several entries

void AddLogIndexEntry(std::string& out, const LogIndexEntry& entry);
// None if the checksum or the stream is wrong. `bytes` are 40.
std::optional<LogIndexEntry> DecodeLogIndexEntry(std::string_view bytes);

// Compares an index, entry by entry, with the streams' files, and returns how to change it so that
// each stored byte belongs to exactly one entry, in the order of its stream: a damaged or duplicate
// entry becomes void, one that reaches beyond its file is shortened, and bytes without an entry are
// given to the next one of their stream, or after the last to a new entry.
class LogIndexCheck {
 public:
  struct File {
    uint64_t bytes = 0;
    int64_t wall_ms = 0;  // last written
  };
  explicit LogIndexCheck(std::map<LogKey, File> files);

  // What must be there instead; none if the entry is right. Compute its `bytes_crc` from the file.
  std::optional<LogIndexEntry> Next(std::string_view forty_bytes);
  std::vector<LogIndexEntry> Missing() const;  // to be added at the end; without crc

 private:
  struct Stream {
    File file;
    uint64_t covered = 0;
  };
  std::map<LogKey, Stream> streams_;
};

}  // namespace athanor
