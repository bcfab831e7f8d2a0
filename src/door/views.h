// How nouns look in the native API.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "door/context.h"

namespace athanor {

struct LiveStats;

Json AcceptedView(const JobRecord& record);  // id, name, state, warnings

// What of a job lies in files, and what its agent told last.
struct JobNumbers {
  std::vector<SeriesSummary> metrics;
  std::optional<uint64_t> log_bytes;
};
JobNumbers ReadNumbers(const DoorContext& context, const JobRecord& record);  // on a reader
// Everything. `stats` may be null.
Json JobView(const DoorContext& context, const JobRecord& record, const LiveStats* stats,
             const JobNumbers& numbers);

// The queue's reason moves without being stored; memory has the newest. On the loop's thread.
void FreshenCauses(const DoorContext& context, std::vector<JobSummary>& jobs);
std::string ListView(const std::vector<JobSummary>& jobs);
// One row of such a list.
std::string SummaryView(const JobSummary& job);
Json MetricsView(const std::vector<SeriesSummary>& summaries);
// NDJSON; numbers that JSON lacks as "NaN", "Infinity", "-Infinity".
std::string PointsView(const std::string& name, const std::vector<SeriesPoint>& points);
// The state a person should see: Stopping while a stop is under way, Unknown
// when its agent has been silent.
std::string ShownState(const DoorContext& context, const JobRecord& record);

}  // namespace athanor
