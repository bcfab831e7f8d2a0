// How nouns look in the native API.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "door/context.h"

namespace athanor {

// id, name, state, warnings
Json AcceptedView(const DoorContext& context, const JobRecord& record);
Json JobView(const DoorContext& context, const JobRecord& record);  // everything
std::string ListView(const DoorContext& context, const std::vector<JobSummary>& jobs);
// One row of such a list.
std::string SummaryView(const DoorContext& context, const JobRecord& record);
Json MetricsView(const std::vector<SeriesSummary>& summaries);
// NDJSON; numbers that JSON lacks as "NaN", "Infinity", "-Infinity".
std::string PointsView(const std::string& name, const std::vector<SeriesPoint>& points);

}  // namespace athanor
