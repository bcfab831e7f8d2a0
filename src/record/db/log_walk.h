// Reads a log of SQLite (WAL) as SQLite does after a crash, but continues where SQLite stops: at
// the first frame whose checksum is wrong. What follows tells the difference between a torn tail,
// which a power cut leaves in a commit that was never acknowledged, and damage in the middle,
// followed by acknowledged commits that SQLite would silently drop.
//
// Damage outside the pages (salts, checksums, the log's header) is repaired if the frames around it
// prove what was there. A page is not repaired: its checksum shows that a single bit has flipped,
// which no torn write looks like, but not always which one.
//
// Threads: none. Any bytes are accepted; nothing is written.
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

// Whether a frame (its header and page) follows `before`, the header of the previous frame; empty
// for the first, which follows the log's header.
bool LogFrameFits(std::string_view log_header, std::string_view before, std::string_view header,
                  std::string_view page);

struct LogFrameSeen {
  uint32_t page = 0;         // whose image it is
  uint32_t pages_then = 0;   // of the whole file: this frame ends a commit; 0: it does not
  bool of_this_log = false;  // its salts are the log's: not left from an earlier log
  bool sound = false;        // it follows from what the previous frame says
  bool flipped = false;      // it is not valid, but would be except for a single bit
};

// Bytes that were repaired.
struct LogPatch {
  uint64_t at = 0;
  std::string bytes;
};

struct LogWalk {
  bool header_sound = false;
  size_t page_size = 0;
  std::vector<LogFrameSeen> frames;  // all complete frames in the file
  std::vector<LogPatch> patches;     // by which frames (and the header) became valid
  std::vector<uint64_t> patched;     // their numbers, from 1; 0 is the header

  // Frames that SQLite applies (after patches): up to the last commit before the first invalid one.
  uint64_t kept = 0;
  uint64_t kept_commits = 0;
  // Commits from the first invalid frame on, in frames that are valid or have one flipped bit.
  uint64_t cut_off = 0;
  // One of them had been acknowledged: something later was written after it, or it was complete
  // before a bit flipped.
  bool damaged = false;

  uint64_t FrameAt(uint64_t number) const {  // from 1
    return kLogHeaderBytes + (number - 1) * (page_size + kLogFrameHeaderBytes);
  }
};

// `read` returns up to `size` bytes at `at`, fewer only at the end.
using LogReader = std::function<Result<std::string>(uint64_t at, size_t size)>;
Result<LogWalk> WalkLog(const LogReader& read);

}  // namespace athanor
