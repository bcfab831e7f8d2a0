// The bodies of log-metric and log-batch calls as every client writes them, read without building a
// document: a training script sends little else. Anything unusual (an escape, NaN, an extra member,
// a wrong type) is left to the general reader of whoever reads: the server's also has the error
// messages. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/point.h"

namespace athanor {

inline constexpr int64_t kMostMillis = INT64_MAX / 1'000'000;  // that are kept in nanoseconds

struct PlainBatch {
  std::vector<Point> metrics;
  std::string rest;  // the body, with null for the metrics
};

// None: not in that form. Only the list of metrics and the path to it have been read: `rest` may
// still be invalid JSON.
std::optional<PlainBatch> ReadPlainBatch(std::string_view body);

struct PlainMetric {
  std::string_view run;  // as it was written; part of the body
  Point point;
};

// None: not in that form.
std::optional<PlainMetric> ReadPlainMetric(std::string_view body);

}  // namespace athanor
