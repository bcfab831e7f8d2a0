// LogStore keeps the bytes that a job printed, exactly once and byte-exact: the length of a
// stream's file is the offset acknowledged so far, so if a chunk is sent twice, it overlaps what is
// there and only its new part is appended. Next to the streams is an index of chunks (time, stream,
// offset, length) which has the order across streams and the time of each line. Bytes are written
// before their index entry. When a job is first used, bytes without an entry get one, so none are
// lost.
//
// Threads: one thread appends; readers may use any thread and see only complete index entries.
// Append returns after write(2) (survives kill -9); Sync as in series. No descriptor is kept open
// between calls; at most 64 idle jobs are kept in memory (a few words per stream, never text or
// index).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/ids.h"
#include "job/log_stream.h"

namespace athanor {

struct LogChunk {
  uint32_t attempt = 1;
  uint32_t host = 0;
  uint32_t rank = 0;
  LogStream stream = LogStream::kStdout;
  uint64_t offset = 0;
  int64_t wall_ms = 0;
  std::string_view bytes;
};

// The position of a reader; text form for ids of server-sent events.
struct LogCursor {
  uint64_t entry = 0;  // index entries completely read
  std::string ToString() const;
  static std::optional<LogCursor> Parse(std::string_view text);
};

struct LogEntry {
  uint32_t attempt = 1;
  uint32_t host = 0;
  uint32_t rank = 0;
  LogStream stream = LogStream::kStdout;
  int64_t wall_ms = 0;
  std::string bytes;     // ends at a line end unless the line was still open when shipped
  bool damaged = false;  // damaged: these are the bytes that the disk has now
  LogCursor after{};     // just after this entry
};

class LogStore {
 public:
  // `on_damage` is called (kCorrupt; from any thread) with what had to be repaired. It must not
  // call the store.
  using OnDamage = std::function<void(JobId, const Error&)>;
  static Result<std::unique_ptr<LogStore>> Open(std::string dir, OnDamage on_damage = {});
  ~LogStore();

  // The stream's length afterwards: what is acknowledged. kInvalid for a gap (offset beyond the
  // length): the sender asks for the Length and goes back there. kExhausted: no space, nothing of
  // the chunk is stored, later appends work.
  struct Appended {
    uint64_t length = 0;
    uint64_t added = 0;
  };
  Result<Appended> Append(JobId job, const LogChunk& chunk);
  Result<uint64_t> Length(JobId job, uint32_t attempt, uint32_t host, uint32_t rank,
                          LogStream stream) const;
  Status Sync();

  // Entries after `cursor`, at most `max_bytes` of text but at least one; moves the
  // cursor. An empty answer means: nothing more now. kNotFound only for a job
  // without any log (so for Tail and Since).
  Result<std::vector<LogEntry>> Read(JobId job, LogCursor& cursor, size_t max_bytes) const;
  // A cursor that is followed by the last `lines` complete lines, if there are that many; the rest
  // of the chunk in which they begin comes before them.
  Result<LogCursor> Tail(JobId job, size_t lines) const;
  // A cursor at the first entry shipped at or after `wall_ms`.
  Result<LogCursor> Since(JobId job, int64_t wall_ms) const;
  Result<uint64_t> Bytes(JobId job) const;
  Status Remove(JobId job);
  void Close(JobId job);

 private:
  struct Parts;
  explicit LogStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
