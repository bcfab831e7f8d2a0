#include "record/series/series_merge.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace athanor {
namespace {

// A total order, except for points of one rank that have the same time; those keep their order.
auto OrderOf(const SeriesPoint& p) { return std::tie(p.step, p.wall_ns, p.attempt, p.rank); }

template <class Points, class Test>
bool Any(const Points& points, Test test) {
  return std::any_of(points.begin(), points.end(), test);
}

bool HasRankZero(const std::vector<SeriesPoint>& points) {
  return Any(points, [](const auto& p) { return p.rank == 0; });
}

// Leaves those that may count at all, before steps are considered.
void KeepSpeakers(std::vector<SeriesPoint>& points) {
  if (Any(points, [](const auto& p) { return !p.guessed; })) {
    std::erase_if(points, [](const auto& p) { return p.guessed; });
  }
  if (HasRankZero(points)) {
    std::erase_if(points, [](const auto& p) { return p.rank != 0; });
  }
}

// Clients send 0 for "no step", too: if there is nothing else, it means none.
void DropZeroSteps(std::vector<SeriesPoint>& points) {
  if (points.size() < 2 || Any(points, [](const auto& p) { return p.step.value_or(0) != 0; })) {
    return;
  }
  for (auto& point : points) point.step.reset();
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

// Whether a later attempt resumed at a step before that of the point.
bool LeftBehind(const SeriesPoint& point, const Resumes& resumes) {
  return point.step && std::any_of(resumes.upper_bound(point.attempt), resumes.end(),
                                   [&](const auto& resume) { return *point.step > resume.second; });
}

void MarkAbandoned(std::vector<SeriesPoint>& points, const Resumes& resumes) {
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
    point.abandoned =
        (at != bound.end() && *point.step >= at->second) || LeftBehind(point, resumes);
  }
}

// Needs the order of arrival; keeps the newest of each (step, attempt, rank).
void DropReplaced(std::vector<SeriesPoint>& points) {
  const auto key = [](const SeriesPoint& p) { return std::tie(p.step, p.attempt, p.rank); };
  const auto below = [&](const auto& a, const auto& b) {
    const auto left = key(a);
    const auto right = key(b);
    return left < right || (left == right && a.wall_ns < b.wall_ns);
  };
  if (!std::is_sorted(points.begin(), points.end(), below)) {
    std::stable_sort(points.begin(), points.end(), below);
  }
  size_t kept = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool replaced =
        points[i].step && i + 1 < points.size() && key(points[i]) == key(points[i + 1]);
    if (!replaced) points[kept++] = points[i];
  }
  points.resize(kept);
}

}  // namespace

// Points mostly arrive in order: checking first costs less than sorting.
void SortPoints(std::vector<SeriesPoint>& points) {
  const auto below = [](const auto& a, const auto& b) { return OrderOf(a) < OrderOf(b); };
  if (std::is_sorted(points.begin(), points.end(), below)) return;
  std::stable_sort(points.begin(), points.end(), below);
}

// The order matters: who does not count must not decide whether there are steps, and points without
// steps abandon nothing.
std::vector<SeriesPoint> MergePoints(std::vector<SeriesPoint> arrived, bool with_abandoned,
                                     const Resumes& resumes) {
  KeepSpeakers(arrived);
  DropZeroSteps(arrived);
  MarkAbandoned(arrived, resumes);
  if (!with_abandoned) {
    std::erase_if(arrived, [](const auto& p) { return p.abandoned; });
  }
  DropReplaced(arrived);
  SortPoints(arrived);
  return arrived;
}

std::vector<SeriesPoint> KeepAllPoints(std::vector<SeriesPoint> arrived, const Resumes& resumes) {
  KeepSpeakers(arrived);
  DropZeroSteps(arrived);
  MarkAbandoned(arrived, resumes);
  std::erase_if(arrived, [](const auto& p) { return p.abandoned; });
  SortPoints(arrived);
  return arrived;
}

RunningSummary RunningSummary::Of(std::vector<SeriesPoint> arrived, const Resumes& resumes) {
  RunningSummary summary;
  summary.s_.any = !arrived.empty();
  summary.s_.logged = Any(arrived, [](const auto& p) { return !p.guessed; });
  KeepSpeakers(arrived);
  summary.s_.rank_zero = HasRankZero(arrived);
  summary.s_.zeros = Any(arrived, [](const auto& p) { return p.step == 0; });
  summary.s_.only_zero = !Any(arrived, [](const auto& p) { return p.step.value_or(0) != 0; });
  for (const auto& point : MergePoints(std::move(arrived), false, resumes)) {
    summary.Count(point);
    if (!point.step) continue;
    if (!summary.s_.attempt || point.attempt > *summary.s_.attempt) {
      summary.s_.attempt = point.attempt;
      summary.s_.first_step = *point.step;
      summary.s_.last_step.clear();
    }
    if (point.attempt == *summary.s_.attempt) summary.s_.last_step[point.rank] = *point.step;
  }
  return summary;
}

void RunningSummary::Count(const SeriesPoint& point) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (s_.value.count == 0) s_.value.min = s_.value.max = kNone;
  if (s_.value.count == 0 || OrderOf(point) >= OrderOf(s_.last)) {
    s_.last = point;
    s_.value.last = point.value;
    s_.value.last_step = point.step;
    s_.value.last_wall_ns = point.wall_ns;
  }
  ++s_.value.count;
  if (!std::isfinite(point.value)) return;
  // Put this way, the NaN that stands for "none yet" is replaced, too.
  if (!(point.value >= s_.value.min)) s_.value.min = point.value;
  if (!(point.value <= s_.value.max)) s_.value.max = point.value;
}

void RunningSummary::Heed(const Resumes& before, const Resumes& now) {
  if (!std::includes(now.begin(), now.end(), before.begin(), before.end())) s_.stale = s_.any;
  // A new resume may abandon points beyond its step. Whether there are any is seen from the last
  // point, which has the greatest step; which attempts they are of is not kept.
  for (const auto& [attempt, step] : now) {
    if (!before.contains(attempt) && s_.value.last_step && *s_.value.last_step > step)
      s_.stale = true;
  }
}

// For the second and later points of a name that has no step but 0: then none of them has a step,
// and the last one is the newest.
void RunningSummary::CountWithoutStep(SeriesPoint point) {
  s_.zeros = s_.zeros || point.step;
  point.step.reset();
  s_.last.step.reset();
  s_.value.last_step.reset();
  s_.attempt.reset();
  s_.last_step.clear();
  Count(point);
}

void RunningSummary::Add(const SeriesPoint& point, const Resumes& resumes) {
  if (point.guessed && s_.logged) return;
  if (!point.guessed && !s_.logged) {
    s_ = {};  // what was guessed counts no more
    s_.logged = true;
  }
  if (s_.stale || (point.rank != 0 && s_.rank_zero)) return;
  if (point.rank == 0 && !s_.rank_zero) {
    s_.rank_zero = true;
    if (s_.any) {  // other ranks counted only because this one was silent
      s_.stale = true;
      return;
    }
  }
  const bool first = !std::exchange(s_.any, true);
  if (!first && s_.only_zero && point.step.value_or(0) == 0) {
    // If none counts so far, the one there was is abandoned for its step. Without one, it counts.
    s_.stale = s_.value.count == 0;
    return s_.stale ? void() : CountWithoutStep(point);
  }
  if (!point.step) return Count(point);
  if (*point.step == 0) {
    s_.zeros = true;
  } else if (std::exchange(s_.only_zero, false) && s_.zeros && s_.value.count > 1) {
    s_.stale = true;  // those at step 0, counted as having none, have it after all
    return;
  }
  if (LeftBehind(point, resumes)) {
    // It does not count, but as the first step of its attempt it may make others not count, either.
    s_.stale = true;
    return;
  }
  // As long as steps rise, each point just adds to the others. One whose step does not may replace
  // one, lower its attempt's first step, or be of an attempt that abandons others or is abandoned.
  if (s_.attempt && point.attempt == *s_.attempt) {
    const auto last = s_.last_step.find(point.rank);
    s_.stale =
        *point.step < s_.first_step || (last != s_.last_step.end() && *point.step <= last->second);
  } else if (s_.attempt) {
    s_.stale = point.attempt < *s_.attempt || *point.step <= *s_.value.last_step;
  }
  if (s_.stale) return;
  if (!s_.attempt || point.attempt > *s_.attempt) {
    s_.attempt = point.attempt;
    s_.first_step = *point.step;
    s_.last_step.clear();
  }
  s_.last_step[point.rank] = *point.step;
  Count(point);
}

}  // namespace athanor
