// The bytes of the spool, shared by the agent's reader (link/spool.h), the
// native writer (link/spool_writer.h) and, restated in struct formats, the
// Python fallback (python/athanor/_spool.py). Little endian, every field
// aligned to its size. A change here is a new magic.
//
//   <spool>/control              one ControlBytes, 4,096 bytes; only the agent writes it
//   <spool>/seg-00000001.spool   SegmentHeader, then `capacity` bytes of records
//
// The agent prepares complete segments (blocks allocated, every page written, then renamed into
// place) and used once: free -> claimed -> closed -> removed. The process that claimed one holds
// flock(LOCK_EX) on the file for as long as it may write. A record is RecordHead + body; `length`
// covers both and is a multiple of 8. Nothing here depends on the rest of the project: the Python
// package builds it alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace athanor::spool {

static_assert(std::endian::native == std::endian::little, "the spool is little endian");

inline constexpr char kSegmentMagic[8] = {'A', 'T', 'H', 'S', 'P', 'L', '1', '\0'};
inline constexpr char kControlMagic[8] = {'A', 'T', 'H', 'C', 'T', 'L', '1', '\0'};
inline constexpr char kControlName[] = "control";
inline constexpr size_t kControlBytes = 4096;
inline constexpr size_t kDefaultSegmentBytes = 512 * 1024;  // header included
inline constexpr size_t kMaxSegmentBytes = size_t{1} << 30;
inline constexpr size_t kMaxNameBytes = 1024;
inline constexpr size_t kMaxRecordBytes = 4096;  // of any kind, known or not

enum SegmentState : uint32_t { kFree = 0, kClaimed = 1, kClosed = 2 };

struct SegmentHeader {
  char magic[8];
  uint32_t serial;     // as in the file's name; never reused in one spool
  uint32_t capacity;   // bytes after the header
  uint64_t committed;  // bytes after the header that are complete records; store-release
  uint32_t state;
  uint32_t writer_pid;
  uint64_t dropped;  // records that the writer had to drop before it claimed this segment
  uint8_t zero[24];
};
static_assert(sizeof(SegmentHeader) == 64);
static_assert(offsetof(SegmentHeader, committed) == 16 && offsetof(SegmentHeader, dropped) == 32);

enum RecordKind : uint32_t { kName = 1, kPoint = 2, kMark = 3, kProgress = 4, kCheckpoint = 5 };

struct RecordHead {
  uint32_t length;
  uint32_t kind;
};

// Followed by the name (UTF-8, 1 to kMaxNameBytes) and zeros up to a multiple of 8.
// Ids hold within one segment; each segment defines its own.
struct NameBody {
  uint32_t name_id;
  uint32_t name_length;
};

inline constexpr uint32_t kHasStep = 1;
struct PointBody {
  uint32_t name_id;
  uint32_t flags;
  int64_t step;  // 0 without kHasStep
  int64_t wall_ns;
  double value;
};

inline constexpr uint32_t kMarkDone = 1;     // athanor.done() was called
inline constexpr uint32_t kMarkCapture = 2;  // the last steps' inputs were written to disk
struct MarkBody {
  uint32_t code;
  uint32_t zero;
  int64_t wall_ns;
};

struct ProgressBody {
  int64_t done;
  int64_t total;
  int64_t wall_ns;
};

// A checkpoint of `step` is complete on disk; saving it blocked the training for `save_ns`.
struct CheckpointBody {
  int64_t step;
  int64_t save_ns;
  int64_t wall_ns;
};

inline constexpr size_t kPointBytes = sizeof(RecordHead) + sizeof(PointBody);
inline constexpr size_t kMarkBytes = sizeof(RecordHead) + sizeof(MarkBody);
inline constexpr size_t kProgressBytes = sizeof(RecordHead) + sizeof(ProgressBody);
inline constexpr size_t kCheckpointBytes = sizeof(RecordHead) + sizeof(CheckpointBody);
inline constexpr size_t NameBytes(size_t name_length) {
  return sizeof(RecordHead) + sizeof(NameBody) + (name_length + 7) / 8 * 8;
}
static_assert(kPointBytes == 40 && kMarkBytes == 24 && kProgressBytes == 32);
static_assert(kCheckpointBytes == 32);
static_assert(NameBytes(kMaxNameBytes) <= kMaxRecordBytes);

inline constexpr int64_t kNoStopStep = INT64_MIN;

// The start of the control page. `seqlock` is odd while the agent writes; a reader uses what it
// read only if the number was even and the same before and after. Members are only ever added at
// the end; the rest of the page is zero.
struct ControlBytes {
  char magic[8];
  uint32_t seqlock;
  uint32_t stop;
  int64_t deadline_unix_ms;  // 0 = none
  int64_t stop_at_step;      // kNoStopStep = now
  char cause[64];            // NUL-terminated
  // Each of these is independent and may be read without the seqlock.
  int64_t checkpoint_every_ms;  // 0 = no advice
  uint32_t checkpoint_now;      // an increase asks for a checkpoint at the next step
  uint32_t capture_now;         // an increase asks to write out the captured steps
};
static_assert(sizeof(ControlBytes) == 112);
static_assert(offsetof(ControlBytes, checkpoint_every_ms) == 96);

}  // namespace athanor::spool
