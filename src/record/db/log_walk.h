// Reads a log of SQLite (WAL) as SQLite does when it takes one over after a crash, but goes on
// where SQLite stops: at the first frame whose sum does not fit. What lies behind tells a torn
// tail, which a power cut leaves in a commit that was never answered, from damage in the middle,
// behind which commits lie that were answered and that SQLite would drop without a word.
//
// What is damaged beside the pages (salts, sums, the log's header) is put right where the frames
// around it prove what it was. A page is not: its sum tells that a single bit has flipped, which no
// torn write looks like, but not always which one.
//
// Threads: none. Any bytes are walked; nothing is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

inline constexpr size_t kLogHeaderBytes = 32;
inline constexpr size_t kLogFrameHeaderBytes = 24;

// Whether a frame (its header and page) follows `before`, the header of the frame in front of it;
// empty for the first, which follows the log's header.
bool LogFrameFits(std::string_view log_header, std::string_view before, std::string_view header,
                  std::string_view page);

struct LogFrameSeen {
  uint32_t page = 0;        // whose image it is
  uint32_t pages_then = 0;  // of the whole file: this frame ends a commit; 0: it does not
  bool of_this_log = false;  // its salts are the log's: not a rest of an earlier log
  bool sound = false;        // it follows what the frame before says of itself
  bool flipped = false;      // it is not sound, and would be but for a single bit
};

// Bytes that were put right.
struct LogPatch {
  uint64_t at = 0;
  std::string bytes;
};

struct LogWalk {
  bool header_sound = false;
  size_t page_size = 0;
  std::vector<LogFrameSeen> frames;    // all whole ones that the file has room for
  std::vector<LogPatch> patches;   // by which frames (and the header) became sound
  std::vector<uint64_t> patched;   // their numbers, from 1; 0 is the header

  // Frames that SQLite takes (patches applied): up to the last commit before the first unsound one.
  uint64_t kept = 0;
  uint64_t kept_commits = 0;
  // Commits from the first unsound frame on, in frames that are sound or flipped.
  uint64_t cut_off = 0;
  // One of them had been answered: something later was written after it, or it was all there
  // before a bit flipped.
  bool damaged = false;

  uint64_t FrameAt(uint64_t number) const {  // from 1
    return kLogHeaderBytes + (number - 1) * (page_size + kLogFrameHeaderBytes);
  }
};

// `read` gives up to `size` bytes at `at`, fewer only at the end.
using LogReader = std::function<Result<std::string>(uint64_t at, size_t size)>;
Result<LogWalk> WalkLog(const LogReader& read);

}  // namespace athanor
