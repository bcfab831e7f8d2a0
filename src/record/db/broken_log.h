// Handles a log (WAL) that was damaged while the store was not in use. SQLite would apply the
// commits before the damage and silently drop everything after it. This code checks the log first,
// keeps a copy, repairs it if the repair can be proven, and reports what was lost. A torn tail is
// not damage: its commit was never acknowledged.
//
// Threads: none; the caller is the only user of the store (the server's lock).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/db/log_walk.h"

namespace athanor {

struct LogState {
  enum class Kind {
    kWhole,    // or there is no log
    kFlipped,  // damage outside the pages that can be repaired: nothing is lost
    kTaken,    // damaged, but all of it was in the file already: nothing is lost
    kCut,      // commits after the damage are lost
    kMixed,    // the same, and some of their pages may be in the file already
  };
  Kind kind = Kind::kWhole;
  LogWalk walk;
  std::string said;  // one line about it; empty if it is complete
};

// For the store at `path`; changes nothing.
Result<LogState> LookAtLog(const std::string& path);

// Prepares the log of the store at `path` so that SQLite applies it as LookAtLog said. First, a
// copy is kept next to it, with a note of what was found: <path>-wal.broken.<time>, or .mended. if
// nothing was lost. Returns what to report; empty: nothing. After an error nothing was changed.
Result<std::string> MendLog(const std::string& path);

// The logs that were kept because something in them was lost, newest last.
std::vector<std::string> BrokenLogsOf(const std::string& path);
// The note about one of them.
std::string NoteOf(const std::string& broken_log);

}  // namespace athanor
