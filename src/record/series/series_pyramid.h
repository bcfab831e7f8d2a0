// What is known about the points of one name without reading them: chunks of up to kChunkPoints
// that arrived one after the other, each with its extremes and the positions of its blocks. A chart
// of a million points is drawn from two thousand chunks; points are read only if a chunk counts in
// part. Pure.
//
// Samples are MinMax samples, as Jugel et al. 2014 (M4) call them, and have also the first and the
// last point of all and the first value of each part that is not finite: no spike is lost, however
// narrow.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "record/series/series_store.h"

namespace athanor {

inline constexpr uint32_t kChunkPoints = 512;

struct SeriesChunk {
  // A point of the series, without what all points of a chunk share.
  struct Spot {
    std::optional<int64_t> step;
    int64_t wall_ns = 0;
    double value = 0;
    bool operator==(const Spot& other) const;  // bit by bit
  };
  // When a point was, and at which step (without one: 0).
  struct Moment {
    int64_t wall_ns = 0;
    int64_t step = 0;
    auto operator<=>(const Moment&) const = default;
  };
  uint32_t attempt = 1;
  uint32_t rank = 0;
  uint32_t count = 0;
  bool guessed = false;
  // Whether its points arrived in the order in which a reader gets them: those without a step
  // first, by time, then by increasing steps.
  bool ordered = true;
  bool by_time = true;        // whether they are in order if their steps do not count
  bool only_zero = true;      // no step but 0, or none
  bool has_stepless = false;  // some have no step
  bool has_extremes = false;  // it has a finite value
  bool has_odd = false;       // it has NaN or an infinity
  uint64_t from = 0;          // bytes of the file that contain all its points: complete blocks
  uint64_t to = 0;
  std::optional<int64_t> first_step;  // the least
  std::optional<int64_t> last_step;   // the greatest
  Moment earliest;
  Moment latest;
  Spot first;
  Spot last;
  Spot min;
  Spot max;
  Spot odd;  // the first that is not finite
};

class SeriesPyramid {
 public:
  // In order of arrival; `from` and `to` are the position of its block.
  void Add(const SeriesPoint& point, uint64_t from, uint64_t to);
  const std::vector<SeriesChunk>& chunks() const { return chunks_; }
  void Take(std::vector<SeriesChunk> chunks) { chunks_ = std::move(chunks); }

 private:
  // Guesses as long as there is nothing else; from the first point that was logged, only those.
  std::vector<SeriesChunk> chunks_;
};

// How a sample is made from chunks: some count completely; for others the points must be read.
struct SamplePlan {
  // False: the order of arrival says too little, so all points must be read and merged.
  bool by_chunks = false;
  std::vector<SeriesChunk> whole;
  std::vector<SeriesChunk> partly;
  uint64_t points = 0;                  // at most so many count
  std::map<uint32_t, int64_t> highest;  // by attempt: the greatest step that counts
  bool guessed = false;                 // what all of them are
  uint32_t rank = 0;                    // of all of them
  bool stepless = false;                // step 0 is none
};
SamplePlan PlanSample(std::vector<SeriesChunk> chunks, const SampleQuery& query,
                      const Resumes& resumes);
// From the points that were read for the plan: those that count and are asked for, in a reader's
// order.
void KeepCounted(const SamplePlan& plan, const SampleQuery& query,
                 std::vector<SeriesPoint>& points);
// Leaves the chunks whose points may count at all: if rank 0 sent points, those of others may not.
void KeepSpeakers(std::vector<SeriesChunk>& chunks);
// Whether they have several points, all at step 0 or without a step: then none of them has one.
bool HaveNoSteps(const std::vector<SeriesChunk>& chunks);

// From points in order: the lowest and the highest of each of `width` parts, the first and the last
// of all, and the first of each part that is not finite. All of them if there are few.
std::vector<SeriesPoint> Thin(const std::vector<SeriesPoint>& points, size_t width);
// The same from chunks that count completely and points that were read in addition.
std::vector<SeriesPoint> ThinChunks(const std::vector<SeriesChunk>& whole,
                                    std::vector<SeriesPoint> read, size_t width);

}  // namespace athanor
