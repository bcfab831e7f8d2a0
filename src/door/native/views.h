// How nouns look in the native API.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "door/context.h"
#include "job/unread.h"

namespace athanor {

struct LiveStats;

// id, name, state, warnings
Json AcceptedView(const DoorContext& context, const JobRecord& record);

// What is in files about a job, and what its agent reported last.
struct JobNumbers {
  std::vector<SeriesSummary> metrics;
  std::optional<uint64_t> log_bytes;
  std::vector<UnreadParam> unread;
};
JobNumbers ReadNumbers(const DoorContext& context, const JobRecord& record);  // on a reader
std::vector<UnreadParam> ReadUnread(const DoorContext& context,
                                    const JobRecord& record);  // the same
// Everything. `stats` may be null.
Json JobView(const DoorContext& context, const JobRecord& record, const LiveStats* stats,
             const JobNumbers& numbers);

// A row of a list, with the state that is shown and its cause.
struct ListedJob {
  JobSummary job;
  std::string_view shown;
};
// The queue's reason changes without being stored; memory has the newest. On the loop's thread.
std::vector<ListedJob> AsShown(const DoorContext& context, std::vector<JobSummary> jobs);
std::string ListView(const std::vector<ListedJob>& rows);
// One row of such a list.
std::string SummaryView(const DoorContext& context, const JobRecord& record);
Json MetricsView(const std::vector<SeriesSummary>& summaries);
// NDJSON; numbers that JSON does not have as "NaN", "Infinity", "-Infinity".
std::string PointsView(const std::string& name, const std::vector<SeriesPoint>& points);

}  // namespace athanor
