// The bodies of log-metric and log-batch calls as every client writes them, read without making a
// document of them: a training script sends little else. What is out of the ordinary in any way (an
// escape, NaN, a member beside the usual ones, a wrong type) is left to the general reader, which
// has the words for what is wrong. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/series/series_store.h"

namespace athanor {

struct PlainBatch {
  std::vector<Point> metrics;
  std::string rest;  // the body, with null for the metrics
};

// None: not in that form. Only the list of metrics and the way to it have been looked at: `rest`
// may still be no JSON.
std::optional<PlainBatch> ReadPlainBatch(std::string_view body);

struct PlainMetric {
  std::string_view run;  // as it was written; part of the body
  Point point;
};

// None: not in that form.
std::optional<PlainMetric> ReadPlainMetric(std::string_view body);

}  // namespace athanor
