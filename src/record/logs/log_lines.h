// LogLines reads a job's log by line number: the lines of what `ath logs` prints, in the order of
// arrival, from 0. It remembers where lines begin (every 256th), so that any page of a million
// lines is read from a few chunks. A line that one rank has not ended yet ends where another rank's
// begins. What was added to the log is indexed at the next request. Kept
// for the few logs that were read last.
//
// Threads: safe from any; two calls for the same log take turns.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exec/mutex.h"
#include "record/logs/log_store.h"

namespace athanor {

// Which part of a log; line numbers count within that part.
struct LogPart {
  bool setup = false;
  bool run = true;
  std::optional<uint32_t> rank = {};  // of the script; the setup has none
  std::optional<uint32_t> host = {};

  bool Has(const LogEntry& entry) const;
  bool operator==(const LogPart&) const = default;
};

class LogLines {
 public:
  struct Page {
    uint64_t from = 0;               // number of the first
    uint64_t total = 0;              // a line that is still open counts
    std::vector<std::string> lines;  // as a terminal shows them, without ends, cut at kMostLine
    std::vector<uint32_t> ranks;     // of each of them; of the setup's, the first of the host
    std::optional<uint64_t> first_error;
  };
  struct Match {
    uint64_t line = 0;
    std::string text;
    uint32_t rank = 0;
  };
  struct Matches {
    std::vector<Match> matches;  // the first ones
    uint64_t total = 0;          // lines that match
  };
  static constexpr size_t kMostLine = 16 << 10;  // bytes

  explicit LogLines(const LogStore& logs, size_t kept = 16);
  ~LogLines();

  // `from` none: the last `count`. A job that printed nothing has no lines.
  Result<Page> Read(JobId job, const LogPart& part, std::optional<uint64_t> from, size_t count);
  // Reads the whole log. `matches` gets lines without their ends.
  Result<Matches> Search(JobId job, const LogPart& part,
                         const std::function<bool(std::string_view)>& matches, size_t limit);

 private:
  struct Index;
  std::shared_ptr<Index> IndexOf(JobId job, const LogPart& part);
  Status Extend(Index& index) const;
  Status Lines(const Index& index, uint64_t from, uint64_t end, Page& page) const;

  const LogStore& logs_;
  const size_t kept_;
  Mutex mutex_;
  std::list<std::shared_ptr<Index>> used_
      GUARDED_BY(mutex_);  // newest first; shared with readers at work
};

// Whether a line shows an error: the head of a traceback, the last line of an exception, ERROR of a
// logger, what the C library prints when a program dies.
bool LooksLikeError(std::string_view line);

}  // namespace athanor
