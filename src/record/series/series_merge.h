// Which points of one name count, given what all attempts and ranks sent: our rule, so that a chart
// shows the training that led to the newest model once, as if nothing had interrupted it. Pure.
//
// Guessed points count only if nothing else was sent. Rank 0 counts for the job; other ranks only
// if rank 0 sent nothing. Several points that all have step 0 have no steps. If an attempt has
// points with steps, those of earlier attempts at or beyond its first step are abandoned; so are
// those beyond the step it resumed from, also for a name that it never logs. Of several points of
// one (attempt, rank, step) the one with the newest time counts, of those the last to arrive.
// Points without a step always count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "record/series/series_store.h"

namespace athanor {

// From the order of arrival to the order of step (without one: first), then time.
std::vector<SeriesPoint> MergePoints(std::vector<SeriesPoint> arrived, bool with_abandoned,
                                     const Resumes& resumes = {});

// The same, but every point that was sent counts, also several of one (attempt, rank, step).
std::vector<SeriesPoint> KeepAllPoints(std::vector<SeriesPoint> arrived, const Resumes& resumes);

// Puts points that are known to count in that order.
void SortPoints(std::vector<SeriesPoint>& points);

// The summary of MergePoints(all added so far), updated point by point where that is exact. A point
// that may replace or abandon others makes it `stale`: it must then be made again from all points.
class RunningSummary {
 public:
  // All it holds, for keeping it.
  struct State {
    SeriesSummary value;  // without the name
    SeriesPoint last;
    bool stale = false;
    bool any = false;
    bool logged = false;  // there is a point that was not guessed
    bool rank_zero = false;
    bool zeros = false;     // there is a point at step 0
    bool only_zero = true;  // and none at another step
    // Of the newest attempt that has steps:
    std::optional<uint32_t> attempt;
    int64_t first_step = 0;
    std::map<uint32_t, int64_t> last_step;  // by rank
  };

  RunningSummary() = default;
  explicit RunningSummary(State state) : s_(std::move(state)) {}
  static RunningSummary Of(std::vector<SeriesPoint> arrived, const Resumes& resumes = {});

  // `resumes` are those that it was made with, or those of the last Heed.
  void Add(const SeriesPoint& point, const Resumes& resumes = {});
  // From now on `now` is valid instead of `before`: stale if that may change what counts.
  void Heed(const Resumes& before, const Resumes& now);
  bool stale() const { return s_.stale; }
  const SeriesSummary& value() const { return s_.value; }  // without the name
  const State& state() const { return s_; }

 private:
  void Count(const SeriesPoint& point);
  void CountWithoutStep(SeriesPoint point);

  State s_;
};

}  // namespace athanor
