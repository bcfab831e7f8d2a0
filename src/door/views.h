// How nouns look in the native API.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "door/context.h"

namespace athanor {

Json AcceptedView(const JobRecord& record);  // id, name, state, warnings
Json JobView(const DoorContext& context, const JobRecord& record);  // everything
std::string ListView(const DoorContext& context, const std::vector<JobSummary>& jobs);
// One row of such a list.
std::string SummaryView(const JobSummary& job);
Json MetricsView(const std::vector<SeriesSummary>& summaries);
// NDJSON; numbers that JSON lacks as "NaN", "Infinity", "-Infinity".
std::string PointsView(const std::string& name, const std::vector<SeriesPoint>& points);
// The state a person should see: Stopping while a stop is under way, Unknown
// when its agent has been silent.
std::string ShownState(const DoorContext& context, const JobRecord& record);

}  // namespace athanor
