// The agent's side of a rank's spool (bytes: link/spool_layout.h). It prepares segments, reads what
// the training process committed to them, and removes what the server has acknowledged. It sends
// nothing and knows no rules on metrics.
//
// Trust: the writer is user code in a process we do not control. Files are read by pread, never
// mapped, so a truncated file is an error and not a SIGBUS. A segment with invalid bytes is counted
// as corrupt and skipped from there on. Threads: one at a time. Crash rule: only the files are
// durable; a new agent reads every segment from its start, and (serial, seq) drops what was sent
// before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "link/spool_layout.h"

namespace athanor {

struct SpoolPoint {
  std::string_view name;  // valid during the callback
  uint64_t seq = 0;       // 1-based index of the point in its segment
  std::optional<int64_t> step;
  int64_t wall_ns = 0;
  double value = 0;
};

struct SpoolMark {
  uint32_t code = 0;
  int64_t wall_ns = 0;
};

struct SpoolProgress {
  int64_t done = 0;
  int64_t total = 0;
  int64_t wall_ns = 0;
};

// The script reports that its checkpoint of `step` is complete on disk.
struct SpoolCheckpoint {
  int64_t step = 0;
  int64_t save_ns = 0;  // how long it blocked training; the writer's value, so possibly < 0
  int64_t wall_ns = 0;
};

// New records of one segment. Only points have a seq: after a restart of the agent, other records
// are seen again.
struct SpoolBatch {
  uint32_t serial = 0;  // the channel for exactly-once delivery
  uint32_t writer_pid = 0;
  uint64_t dropped = 0;  // by this writer before this segment; the same in each batch of it
  bool seen = false;     // LookAhead has shown all of it before
  std::vector<SpoolPoint> points;
  std::vector<SpoolMark> marks;
  std::vector<SpoolProgress> progress;
  std::vector<SpoolCheckpoint> checkpoints;
};

// Reads the records of one segment, in order, from any split into pieces.
class SpoolParser {
 public:
  enum class Stop { kEnd, kCut, kBad };  // all used; the last record is cut off; invalid

  // Appends the complete records at the front of `bytes` to `batch`; `used` is the number of bytes
  // they took. Continue parsing with the bytes after them.
  Stop Parse(std::string_view bytes, SpoolBatch& batch, size_t& used);
  uint64_t points() const { return points_; }
  uint64_t unknown() const { return unknown_; }  // well-formed records of other kinds

 private:
  bool ParseRecord(uint32_t kind, std::string_view body, SpoolBatch& batch);
  bool DefineName(std::string_view body);

  std::unordered_map<uint32_t, std::string> names_;
  uint64_t points_ = 0;
  uint64_t unknown_ = 0;
};

class SpoolSegments {
 public:
  struct Options {
    size_t spare = 4;  // free segments kept ready; 0: only read, create nothing
    size_t segment_bytes = spool::kDefaultSegmentBytes;
    uint64_t budget_bytes = uint64_t{256} << 20;  // of all segments on disk
    mode_t mode = 0600;
  };
  struct Counts {
    uint64_t points = 0;
    uint64_t dropped = 0;  // as the writers of the segments seen so far report
    uint64_t corrupt_segments = 0;
    uint64_t lost_segments = 0;  // removed by another process
    uint64_t unknown_records = 0;
  };
  using Callback = std::function<void(const SpoolBatch&)>;

  // Makes `dir` if missing, takes over the segments in it and tops up the spare ones. The errors of
  // MakeDirs and OpenDir; a full disk is not an error here (see Poll).
  static Result<SpoolSegments> Open(const std::string& dir, Options options);
  // The same for an open folder.
  static Result<SpoolSegments> Open(UniqueFd dir, Options options);

  // Returns what was committed since the last call, with each writer's records in the order in
  // which it wrote them, and tops up the spare segments. Stops after about `max_points`, so that
  // the rest stays on disk if the caller cannot send. An error (kExhausted: disk full) is only
  // about the top-up; reading was done.
  Status Poll(const Callback& callback, size_t max_points = SIZE_MAX);

  // Shows what was committed as of the last Poll and was not returned by Poll or an earlier call.
  // It stays for Poll, which returns it again, marked `seen`. For code that must not wait until it
  // can be sent.
  void LookAhead(const Callback& callback);

  // Points up to `seq` of segment `serial` are stored by the server. A segment is removed when its
  // writer is done or dead and all of it is read and acknowledged.
  void Acknowledge(uint32_t serial, uint64_t seq);

  // As of the last Poll: no segment has a live writer, and everything is read (not:
  // acknowledged).
  bool Drained() const;
  const Counts& counts() const { return counts_; }
  size_t segments() const { return segments_.size(); }

 private:
  struct Cursor {
    uint64_t position = 0;  // read so far, after the header
    SpoolParser parser;
  };
  struct Segment {
    uint64_t bytes = 0;           // of the file
    uint64_t committed = 0;       // as last seen
    Cursor taken;                 // by Poll
    std::optional<Cursor> ahead;  // of LookAhead, while it is before `taken`
    bool ahead_bad = false;
    uint64_t suspect = UINT64_MAX;
    uint64_t acknowledged = 0;
    uint64_t dropped = 0;
    uint32_t writer_pid = 0;
    bool free = false;
    bool gone = false;  // its writer: closed it, or died
    bool done = false;  // its writer is gone and all is read, or it was given up
  };

  SpoolSegments() = default;
  Status Adopt();
  Status TopUp();
  Status Create(uint32_t serial);
  Result<UniqueFd> OpenSegment(uint32_t serial, Segment& segment);
  void Look(uint32_t serial, Segment& segment);
  void Read(uint32_t serial, Segment& segment, const Callback& callback, size_t& left);
  // From `at`, a cursor of the segment, up to `end`; false: invalid data.
  bool ReadRecords(int fd, uint32_t serial, const Segment& segment, Cursor& at, uint64_t end,
                   bool seen, const Callback& callback, size_t& left);
  void GiveUp(Segment& segment, uint64_t& counter);
  void RemoveFinished();

  UniqueFd dir_fd_;
  Options options_;
  Counts counts_;
  uint32_t last_serial_ = 0;
  std::map<uint32_t, Segment> segments_;
};

struct ControlState {
  bool stop = false;
  int64_t deadline_unix_ms = 0;               // 0 = none
  int64_t stop_at_step = spool::kNoStopStep;  // stop all ranks at one step
  std::string cause;                          // cut to 63 bytes
  int64_t checkpoint_every_ms = 0;            // advice to should_checkpoint(); 0 = none
  // Counters that only increase. An increase asks for a checkpoint at the next step, or for the
  // captured steps to be written out. A new agent continues from what ReadControl returns.
  uint32_t checkpoint_now = 0;
  uint32_t capture_now = 0;

  bool operator==(const ControlState&) const = default;
};

// The page through which the agent tells a rank to stop, and how often to save. Only the
// agent writes it, and always all of it: keep one ControlState per page and change that.
class ControlPage {
 public:
  // Creates <dir>/control, or takes over the one of an earlier agent. After taking over, call
  // Set(): that agent may have died in the middle of a write.
  static Result<ControlPage> Open(const std::string& dir, mode_t mode = 0644);
  static Result<ControlPage> Open(int dir_fd, mode_t mode = 0644);
  Status Set(const ControlState& state);

 private:
  UniqueFd fd_;
  uint32_t seqlock_ = 0;
};

// What a rank sees. kCorrupt: not a control page; kUnavailable: read in the middle of a write, try
// again.
Result<ControlState> ReadControl(const std::string& dir);
Result<ControlState> ReadControl(int dir_fd);

}  // namespace athanor
