// What is known about a metric of a run without its points.
#pragma once

#include <cstdint>

namespace athanor {

struct RunMetric {
  uint32_t key = 0;  // a number for its name
  double last = 0;
  int64_t step = 0;  // also 0 if there is none
  int64_t wall_ms = 0;
  double min = 0;  // of finite values; NaN: there is none
  double max = 0;
  uint64_t count = 0;
};

}  // namespace athanor
