#include "door/mlflow/model_metrics.h"

#include <cstdlib>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kPrefix = "metric\n";

}  // namespace

bool IsMetricTag(std::string_view key) { return StartsWith(key, kPrefix); }

std::pair<std::string, std::string> TagOf(const ModelMetric& metric) {
  return {fmt::format("{}{}\n{}\n{}\n{}", kPrefix, metric.key, metric.dataset_digest, metric.run_id,
                      metric.dataset_name),
          fmt::format("{} {} {}", metric.step, metric.timestamp_ms, metric.value)};
}

std::optional<ModelMetric> MetricOf(const std::string& key, const std::string& value) {
  if (!IsMetricTag(key)) return std::nullopt;
  ModelMetric metric;
  size_t at = kPrefix.size();
  for (auto* part : {&metric.key, &metric.dataset_digest, &metric.run_id}) {
    const size_t end = key.find('\n', at);
    if (end == std::string::npos) return std::nullopt;
    *part = key.substr(at, end - at);
    at = end + 1;
  }
  metric.dataset_name = key.substr(at);
  char* end = nullptr;
  metric.step = std::strtoll(value.c_str(), &end, 10);
  metric.timestamp_ms = std::strtoll(end, &end, 10);
  metric.value = std::strtod(end, &end);
  if (*end != '\0') return std::nullopt;
  return metric;
}

std::vector<ModelMetric> MetricsOf(const LoggedModel& model) {
  std::vector<ModelMetric> metrics;
  for (auto at = model.tags.lower_bound(std::string(kPrefix));
       at != model.tags.end() && IsMetricTag(at->first); ++at) {
    if (auto metric = MetricOf(at->first, at->second)) metrics.push_back(std::move(*metric));
  }
  return metrics;
}

Tags PlainTags(const LoggedModel& model) {
  Tags tags = model.tags;
  std::erase_if(tags, [](const auto& tag) { return IsMetricTag(tag.first); });
  return tags;
}

}  // namespace athanor
