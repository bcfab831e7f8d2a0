// Metrics of logged models (MLflow 3): the last value of each, by data set and run. They are stored
// among the model's tags, under keys that no client can write, because they contain line breaks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "track/model_book.h"

namespace athanor {

struct ModelMetric {
  std::string key;
  std::string run_id;
  std::string dataset_name;  // empty: on none
  std::string dataset_digest;
  double value = 0;
  int64_t timestamp_ms = 0;
  int64_t step = 0;
};

bool IsMetricTag(std::string_view key);
// The tag that keeps it; neither key, digest nor run id may have a line break.
std::pair<std::string, std::string> TagOf(const ModelMetric& metric);
std::optional<ModelMetric> MetricOf(const std::string& key, const std::string& value);
std::vector<ModelMetric> MetricsOf(const LoggedModel& model);
// Without the tags that are metrics.
Tags PlainTags(const LoggedModel& model);

}  // namespace athanor
