#include "run/mlflow/logged_points.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "link/kept_call.h"
#include "link/plain_batch.h"

namespace athanor {
namespace {

std::string TextIn(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

// A number, or a text with one: clients write "NaN" and "Infinity".
std::optional<double> DoubleIn(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end()) return std::nullopt;
  if (at->is_number()) return at->get<double>();
  if (!at->is_string()) return std::nullopt;
  const auto& text = at->get_ref<const std::string&>();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> IntIn(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end()) return std::nullopt;
  if (at->is_number_integer()) return at->get<int64_t>();
  if (!at->is_string()) return std::nullopt;
  const auto& text = at->get_ref<const std::string&>();
  int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// One that cannot be read has no name: the others keep their numbers.
Point PointIn(const Json& metric) {
  Point point;
  if (!metric.is_object()) return point;
  const auto value = DoubleIn(metric, "value");
  const auto millis = IntIn(metric, "timestamp");
  if (!value || !millis || *millis < 0 || *millis > kMostMillis) return point;
  point.name = TextIn(metric, "key");
  point.value = *value;
  point.wall_ns = *millis * 1'000'000;
  point.step = IntIn(metric, "step");
  return point;
}

struct Logged {
  std::string run;
  std::vector<Point> points;
};

std::string RunIn(const Json& body) {
  auto run = TextIn(body, "run_id");
  return run.empty() ? TextIn(body, "run_uuid") : run;
}

Logged ReadMetric(const std::string& body) {
  if (auto plain = ReadPlainMetric(body)) {
    Logged logged{std::string(plain->run), {}};
    logged.points.push_back(std::move(plain->point));
    return logged;
  }
  const auto json = ParseJson(body);
  if (!json || !json->is_object()) return {};
  return {RunIn(*json), {PointIn(*json)}};
}

Logged ReadBatch(const std::string& body) {
  auto plain = ReadPlainBatch(body);
  const auto json = ParseJson(plain ? plain->rest : body);
  if (!json || !json->is_object()) return {};
  Logged logged{RunIn(*json), {}};
  if (plain) {
    logged.points = std::move(plain->metrics);
  } else if (const auto metrics = json->find("metrics");
             metrics != json->end() && metrics->is_array()) {
    for (const auto& metric : *metrics) logged.points.push_back(PointIn(metric));
  }
  return logged;
}

}  // namespace

PointBatch LoggedPoints(const KeptCall& call, uint32_t channel, JobId run) {
  PointBatch batch;
  batch.channel = channel;
  const bool one = EndsWith(call.target, "/runs/log-metric");
  if (call.method != "POST" || (!one && !EndsWith(call.target, "/runs/log-batch"))) return batch;
  auto logged = one ? ReadMetric(call.body) : ReadBatch(call.body);
  if (JobId::Parse(logged.run) != run) return batch;
  const KeptPlace place{channel, call.seq, {}};
  for (size_t i = 0; i < logged.points.size(); ++i) {
    auto& point = logged.points[i];
    if (!point.name.empty()) batch.items.push_back({SeqOfPoint(place, i), std::move(point)});
  }
  return batch;
}

}  // namespace athanor
