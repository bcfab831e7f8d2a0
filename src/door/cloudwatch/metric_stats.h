// Statistics of a series by periods of wall time, as CloudWatch makes them. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "record/series/series_store.h"

namespace athanor {

struct StatWindow {
  int64_t start_ms = 0;
  int64_t end_ms = 0;  // not included
  int64_t period_ms = 60'000;

  // The start as CloudWatch rounds it: down to the minute, or to the period if that is shorter.
  int64_t Origin() const;
};

struct StatPoint {
  int64_t time_ms = 0;  // of the period's start
  uint64_t count = 0;
  double sum = 0;
  double least = 0;
  double most = 0;
};

// In order of time; periods without a value are left out. Values that CloudWatch would not accept
// do not count: NaN, infinities, and those beyond 2^360.
std::vector<StatPoint> Statistics(const std::vector<SeriesPoint>& points, const StatWindow& window);

bool IsStatistic(std::string_view name);  // "Average", "Sum", "Minimum", "Maximum", "SampleCount"
double ValueOf(const StatPoint& point, std::string_view statistic);

}  // namespace athanor
