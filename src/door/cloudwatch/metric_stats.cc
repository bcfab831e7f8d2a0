#include "door/cloudwatch/metric_stats.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace athanor {
namespace {

constexpr int64_t kMinute = 60'000;
constexpr int64_t kNanosPerMilli = 1'000'000;
const double kLargest = std::ldexp(1.0, 360);

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

int64_t StatWindow::Origin() const {
  const int64_t grain = std::min(kMinute, std::max<int64_t>(1, period_ms));
  return FloorDiv(start_ms, grain) * grain;
}

std::vector<StatPoint> Statistics(const std::vector<SeriesPoint>& points,
                                  const StatWindow& window) {
  const int64_t origin = window.Origin();
  std::map<int64_t, StatPoint> periods;  // points are in order of step, not of time
  for (const auto& point : points) {
    const int64_t ms = FloorDiv(point.wall_ns, kNanosPerMilli);
    // false for NaN, too
    if (!(std::abs(point.value) <= kLargest) || ms < origin || ms >= window.end_ms) continue;
    const int64_t number = (ms - origin) / window.period_ms;
    auto& period = periods[number];
    if (period.count == 0) {
      period = {origin + number * window.period_ms, 0, 0, point.value, point.value};
    }
    ++period.count;
    period.sum += point.value;
    period.least = std::min(period.least, point.value);
    period.most = std::max(period.most, point.value);
  }
  std::vector<StatPoint> found;
  found.reserve(periods.size());
  for (const auto& [number, period] : periods) found.push_back(period);
  return found;
}

bool IsStatistic(std::string_view name) {
  return name == "Average" || name == "Sum" || name == "Minimum" || name == "Maximum" ||
         name == "SampleCount";
}

double ValueOf(const StatPoint& point, std::string_view statistic) {
  if (statistic == "Sum") return point.sum;
  if (statistic == "Minimum") return point.least;
  if (statistic == "Maximum") return point.most;
  if (statistic == "SampleCount") return static_cast<double>(point.count);
  return point.sum / static_cast<double>(point.count);
}

}  // namespace athanor
