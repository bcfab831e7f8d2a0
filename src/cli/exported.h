// A run's points, exported from the server, and the formats that need more than a line each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/client.h"
#include "cli/verbs/verbs.h"

namespace athanor {

struct ExportedPoint {
  std::string name;
  std::optional<int64_t> step;
  int64_t time_ms = 0;
  double value = 0;
  std::string value_text;  // as the server wrote it; "NaN" and similar without quotes
  int64_t attempt = 1;
  bool abandoned = false;
};

Result<ExportedPoint> ReadPoint(const std::string& line);
// Points of all metrics, metric by metric, as the lines of the API.
Status ForEachLine(Client& client, const ExportOptions& options,
                   const std::function<Status(const std::string& line)>& take);

// The run in the layout of MLflow's folders (mlruns): experiment, run, params, tags, metrics. If an
// experiment of that name exists, the run is added to it; if a run of that id exists, kConflict.
// Returns the number of points.
Result<uint64_t> ExportMlflow(Client& client, const ExportOptions& options, const std::string& dir);

}  // namespace athanor
