// What is done about a log (WAL) that was damaged while nobody used the store: SQLite would take
// the commits in front of the damage and drop all behind it without a word. Here the log is
// looked at first, kept aside as it was, mended where that can be proven, and what was lost is
// told. A torn tail is none of this: its commit was never answered.
//
// Threads: none; the caller is the only one to use the store (the server's lock).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/db/log_walk.h"

namespace athanor {

struct LogState {
  enum class Kind {
    kWhole,    // or there is none
    kFlipped,  // bits beside the pages, which can be put right: nothing is lost
    kTaken,    // damaged, but all of it was in the file already: nothing is lost
    kCut,      // commits behind the damage are lost
    kMixed,    // the same, and some of their pages may be in the file already
  };
  Kind kind = Kind::kWhole;
  LogWalk walk;
  std::string said;  // one line about it; empty when it is whole
};

// Of the store at `path`; changes nothing.
Result<LogState> LookAtLog(const std::string& path);

// Makes the log of the store at `path` one that SQLite takes as LookAtLog said. Before, a copy is
// kept beside it, with a note of what was found: <path>-wal.broken.<time>, or .mended. where nothing
// was lost. What is to be told; empty: nothing. On an error nothing was changed.
Result<std::string> MendLog(const std::string& path);

// The logs that were kept aside because something in them was lost, newest last.
std::vector<std::string> BrokenLogsOf(const std::string& path);
// What was noted about one of them.
std::string NoteOf(const std::string& broken_log);

}  // namespace athanor
