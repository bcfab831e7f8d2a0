// Which points of one name count, given what all attempts and ranks sent. Pure.
//
// Rank 0 speaks for the job; the other ranks only where it is silent. When an
// attempt has points with steps, those of earlier attempts at or beyond its first
// step are abandoned. Of several points of one (attempt, rank, step) the last to
// arrive counts. Points without a step always count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "record/series/series_store.h"

namespace athanor {

// From the order of arrival to the order of step (without one: first), then time.
std::vector<SeriesPoint> MergePoints(std::vector<SeriesPoint> arrived, bool with_abandoned);

// The summary of MergePoints(all added so far), kept up point by point where that
// is exact. A point that may replace or abandon others makes it `stale`: then it
// must be made anew from all points.
class RunningSummary {
 public:
  RunningSummary() = default;
  static RunningSummary Of(std::vector<SeriesPoint> arrived);

  void Add(const SeriesPoint& point);
  bool stale() const { return stale_; }
  const SeriesSummary& value() const { return value_; }  // without the name

 private:
  void Count(const SeriesPoint& point);

  SeriesSummary value_;
  SeriesPoint last_;
  bool stale_ = false;
  bool any_ = false;
  bool rank_zero_ = false;
  // Of the newest attempt that has steps:
  std::optional<uint32_t> attempt_;
  int64_t first_step_ = 0;
  std::map<uint32_t, int64_t> last_step_;  // by rank
};

}  // namespace athanor
