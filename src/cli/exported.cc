#include "cli/exported.h"

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/text/text.h"
#include "cli/screen/reading.h"

namespace athanor {

Result<ExportedPoint> ReadPoint(const std::string& line) {
  ATHANOR_TRY(const auto json, ParseJson(line));
  ExportedPoint point;
  point.name = Text(json, "name");
  if (json.contains("step")) point.step = Number(json, "step");
  point.time_ms = TimeOf(json, "time");
  point.attempt = json.contains("attempt") ? Number(json, "attempt") : 1;
  point.abandoned = json.contains("abandoned");
  const auto& value = json.at("value");
  if (value.is_number()) {
    point.value = value.get<double>();
    point.value_text = value.dump();
  } else {
    point.value_text = value.is_string() ? value.get<std::string>() : "NaN";
    point.value = std::strtod(point.value_text.c_str(), nullptr);
  }
  return point;
}

Status ForEachLine(Client& client, const ExportOptions& options,
                   const std::function<Status(const std::string& line)>& take) {
  const auto base = "/api/v1/jobs/" + UrlEncode(options.job) + "/metrics";
  ATHANOR_TRY(const auto all, client.Get(base));
  for (const auto& metric : all["metrics"]) {
    ATHANOR_TRY(const auto lines, client.GetText(PointsTarget(base, Text(metric, "name")) +
                                                 (options.abandoned ? "&abandoned=true" : "")));
    for (const auto& line : Split(lines, '\n')) {
      if (!line.empty()) ATHANOR_CHECK_OK(take(line));
    }
  }
  return Ok();
}

}  // namespace athanor
