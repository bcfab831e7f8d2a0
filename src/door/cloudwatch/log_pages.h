// Pages of a job's log in CloudWatch's events, forward from a position or backward from one. A page
// costs what it reads: its own entries and at most the block of entries around its position, never
// the log from its start. (A time is looked for in the index, and so are clocks that went back, for
// a page backward.)
//
// Threads: any; belongs on the readers, not on the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "door/cloudwatch/log_events.h"
#include "record/logs/log_store.h"

namespace athanor {

struct LogPageWant {
  JobId job;
  uint32_t host = 0;
  bool over = false;  // the job is: its last line is complete as it is
  int64_t start_ms = 0;
  int64_t end_ms = std::numeric_limits<int64_t>::max();  // not included
  size_t limit = 10'000;
  size_t bytes = 1 << 20;  // of text, with 26 for each event, as AWS counts
  // Forward only: which events count, and after how much text to give up.
  std::function<bool(std::string_view text)> wanted;
  size_t most_read = std::numeric_limits<size_t>::max();
};

struct LogPage {
  std::vector<LogEvent> events;  // in order
  LogPosition before;            // right before the first of them
  LogPosition after;             // where the next page begins
  size_t bytes = 0;              // as counted for `want.bytes`
  size_t read = 0;               // bytes of the store, after the start
  bool more = false;             // stopped by a limit, not by the end
};

// All of these: kNotFound for a job without any log.

// The first event that is not before `wall_ms`.
Result<LogPosition> PositionSince(const LogStore& logs, JobId job, int64_t wall_ms);
Result<LogPage> PageFrom(const LogStore& logs, const LogPageWant& want, const LogPosition& start);
// The last events before `end`; none: before the end of the log.
Result<LogPage> PageBefore(const LogStore& logs, const LogPageWant& want,
                           std::optional<LogPosition> end);

}  // namespace athanor
