#include "record/series/series_merge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace athanor {
namespace {

// Total but for points of one rank that carry the same time; those keep their order.
auto OrderOf(const SeriesPoint& p) {
  return std::tie(p.step, p.wall_ns, p.attempt, p.rank);
}

bool HasRankZero(const std::vector<SeriesPoint>& points) {
  return std::any_of(points.begin(), points.end(), [](const auto& p) { return p.rank == 0; });
}

// First step of each attempt that has one.
std::map<uint32_t, int64_t> FirstSteps(const std::vector<SeriesPoint>& points) {
  std::map<uint32_t, int64_t> first;
  for (const auto& point : points) {
    if (!point.step) continue;
    const auto [at, fresh] = first.try_emplace(point.attempt, *point.step);
    if (!fresh) at->second = std::min(at->second, *point.step);
  }
  return first;
}

void MarkAbandoned(std::vector<SeriesPoint>& points) {
  // From "first step of each attempt" to "least first step of all later attempts".
  std::map<uint32_t, int64_t> bound;
  std::optional<int64_t> least;
  const auto first = FirstSteps(points);
  for (auto at = first.rbegin(); at != first.rend(); ++at) {
    if (least) bound[at->first] = *least;
    least = least ? std::min(*least, at->second) : at->second;
  }
  for (auto& point : points) {
    if (!point.step) continue;
    const auto at = bound.find(point.attempt);
    point.abandoned = at != bound.end() && *point.step >= at->second;
  }
}

// Needs the order of arrival; keeps the last of each (step, attempt, rank).
void DropReplaced(std::vector<SeriesPoint>& points) {
  const auto key = [](const SeriesPoint& p) { return std::tie(p.step, p.attempt, p.rank); };
  std::stable_sort(points.begin(), points.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  size_t kept = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool replaced =
        points[i].step && i + 1 < points.size() && key(points[i]) == key(points[i + 1]);
    if (!replaced) points[kept++] = points[i];
  }
  points.resize(kept);
}

}  // namespace

std::vector<SeriesPoint> MergePoints(std::vector<SeriesPoint> arrived, bool with_abandoned) {
  if (HasRankZero(arrived)) {
    std::erase_if(arrived, [](const auto& p) { return p.rank != 0; });
  }
  MarkAbandoned(arrived);
  if (!with_abandoned) {
    std::erase_if(arrived, [](const auto& p) { return p.abandoned; });
  }
  DropReplaced(arrived);
  std::stable_sort(arrived.begin(), arrived.end(),
                   [](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); });
  return arrived;
}

RunningSummary RunningSummary::Of(std::vector<SeriesPoint> arrived) {
  RunningSummary summary;
  summary.any_ = !arrived.empty();
  summary.rank_zero_ = HasRankZero(arrived);
  for (const auto& point : MergePoints(std::move(arrived), false)) {
    summary.Count(point);
    if (!point.step) continue;
    if (!summary.attempt_ || point.attempt > *summary.attempt_) {
      summary.attempt_ = point.attempt;
      summary.first_step_ = *point.step;
      summary.last_step_.clear();
    }
    if (point.attempt == *summary.attempt_) summary.last_step_[point.rank] = *point.step;
  }
  return summary;
}

void RunningSummary::Count(const SeriesPoint& point) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (value_.count == 0) value_.min = value_.max = kNone;
  if (value_.count == 0 || OrderOf(point) >= OrderOf(last_)) {
    last_ = point;
    value_.last = point.value;
    value_.last_step = point.step;
    value_.last_wall_ns = point.wall_ns;
  }
  ++value_.count;
  if (!std::isfinite(point.value)) return;
  if (!(point.value >= value_.min)) value_.min = point.value;
  if (!(point.value <= value_.max)) value_.max = point.value;
}

void RunningSummary::Add(const SeriesPoint& point) {
  if (stale_ || (point.rank != 0 && rank_zero_)) return;
  if (point.rank == 0 && !rank_zero_) {
    rank_zero_ = true;
    if (any_) {
      stale_ = true;
      return;
    }
  }
  any_ = true;
  if (!point.step) {
    Count(point);
    return;
  }
  if (attempt_ && point.attempt == *attempt_) {
    const auto last = last_step_.find(point.rank);
    stale_ = *point.step < first_step_ || (last != last_step_.end() && *point.step <= last->second);
  } else if (attempt_) {
    stale_ = point.attempt < *attempt_ || *point.step <= *value_.last_step;
  }
  if (stale_) return;
  if (!attempt_ || point.attempt > *attempt_) {
    attempt_ = point.attempt;
    first_step_ = *point.step;
    last_step_.clear();
  }
  last_step_[point.rank] = *point.step;
  Count(point);
}

}  // namespace athanor
