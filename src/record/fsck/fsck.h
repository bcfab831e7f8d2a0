// Fsck checks a server's stores while no server runs: whether each part is as it was written, and
// whether the parts agree with each other. Without `repair` nothing is changed. With it, only safe
// repairs are made: what is damaged or belongs to no job is moved to <home>/lost+found (a copy, if
// the file itself stays in use), torn tails are cut, columns are made again from their record, and
// effects of jobs that are gone are dropped. A damaged log of a database is kept, and repaired as
// far as the repair can be proven (db/broken_log.h). Nothing that a user made is ever deleted.
//
// Threads: one call at a time; the caller holds the server's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/layout.h"

namespace athanor {

struct Finding {
  std::string part;   // "database", "job", "event", "outbox", "key", "secret", "blob", "series",
                      // "log", "checkpoint", "object", "eventfile", "artifact", "leftover"
  std::string what;   // one line
  std::string why;    // the value seen
  std::string hint;   // what to type
  std::string where;  // the file
  bool repaired = false;
};

struct FsckOptions {
  bool repair = false;
  bool deep = false;  // reads every blob that is named and compares its sha256
};

struct FsckReport {
  std::vector<Finding> findings;
  uint64_t jobs = 0;
  uint64_t events = 0;
  uint64_t blobs = 0;  // looked at
  uint64_t series = 0;
  uint64_t logs = 0;
  uint64_t checkpoints = 0;
  uint64_t objects = 0;
  uint64_t bytes = 0;   // of what was read whole
  int64_t version = 0;  // of the schema

  bool clean() const { return findings.empty(); }
  size_t left() const;  // findings that were not repaired
};

// kNotFound: no store there. kConflict: written by a newer program. A database too
// damaged to be read is a finding, not an error.
Result<FsckReport> Fsck(const StoreLayout& layout, const FsckOptions& options);

}  // namespace athanor
