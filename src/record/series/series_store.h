// SeriesStore keeps metric points: append-only, checksummed, exactly once.
//
// A point is known by (job, attempt, rank, channel, seq): seq rises within a
// channel, and a point whose seq is not above the last one stored is a
// duplicate and is dropped. Append returns after write(2): the points survive
// kill -9 of the server; Sync makes them survive a power cut and is called
// every 100 ms. A job's file (series_places.h) is read at the first touch, from where its index
// (series_index.h) ends: a torn tail is cut, a damaged record is stepped over, and both
// are reported; what is read is always what was written.
//
// Threads: one thread appends; reads and Sync may come from any thread, and do
// not make the appender wait for the disk or for each other's scans. The files appended to
// last (16 at most) stay open until the next Sync.
// Memory: about `held_bytes` in all. What an append needs of a job is a few hundred bytes and as much for
// each name, whatever was written before, and is held for tens of thousands of jobs; outlines for
// charts go first when there is not room for both, and are read again when they are wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/ids.h"

namespace athanor {

struct Point {
  std::string name;
  std::optional<int64_t> step;
  int64_t wall_ns = 0;
  double value = 0;  // NaN and infinities are kept exactly
};

// The channels of points that were guessed from what a script printed, one for each stream. They
// count only as long as no other channel has a point of the same name, in any attempt; from then on
// Append leaves them out.
inline constexpr uint32_t kGuessChannel = 0xC000'0000u;
inline constexpr bool IsGuessed(uint32_t channel) {
  return channel >= kGuessChannel && channel - kGuessChannel < 8;
}

struct PointBatch {
  uint32_t attempt = 1;  // number
  uint32_t rank = 0;
  uint32_t channel = 0;
  struct Item {
    uint64_t seq = 0;
    Point point;
  };
  std::vector<Item> items;
};

// One value per step: the newest attempt's; points of older attempts beyond the
// step at which the newer one resumed are `abandoned`. A name that has several points, and none at
// a step but 0, has no steps: clients send 0 for none.
struct SeriesPoint {
  std::optional<int64_t> step;
  int64_t wall_ns = 0;
  double value = 0;
  uint32_t attempt = 1;
  uint32_t rank = 0;
  bool abandoned = false;
  bool guessed = false;
};

// The step that an attempt (by number) resumed from; those that began anew are not in it.
using Resumes = std::map<uint32_t, int64_t>;

inline constexpr uint64_t kFewPoints = 16 * 1024;  // a sample of so many is made from all of them

struct SampleQuery {
  std::optional<int64_t> from_step;  // inclusive; when either is given, points without a step
  std::optional<int64_t> to_step;    // are left out
  size_t width = 1000;               // pixels
};

struct SeriesSummary {
  std::string name;
  uint64_t count = 0;  // not abandoned
  double last = 0;
  std::optional<int64_t> last_step;
  int64_t last_wall_ns = 0;
  double min = 0;  // NaN when there is no finite value
  double max = 0;
};

inline constexpr size_t kHeldSeriesBytes = 64u << 20;
inline constexpr size_t kMaxSeriesNames = 100'000;  // of one job
inline constexpr std::string_view kTooManyNames = "ATH-R0046";

enum class WalkOrder;
class SeriesWalk;

class SeriesStore {
 public:
  // `on_damage` is told (kCorrupt; from any thread) what could not be read. It must
  // not call the store.
  using OnDamage = std::function<void(JobId, const Error&)>;
  static Result<std::unique_ptr<SeriesStore>> Open(std::string dir, OnDamage on_damage = {},
                                                   size_t held_bytes = kHeldSeriesBytes);
  ~SeriesStore();

  // How many of the items were new; they are stored all or, on an error, none.
  // kExhausted: no space; later appends go on where this one left. kInvalid: a name
  // is empty or longer than 1,024 bytes; sending the batch again will not help.
  // kInvalid with the id kTooManyNames: the job has 100,000 names already; the points of names
  // it has are stored, those of new ones are not and never will be.
  Result<size_t> Append(JobId job, const PointBatch& batch);
  // The same for a sender that does not number its points (their seq is not looked at): each
  // is new, and follows the last one of its attempt, rank and channel.
  Result<size_t> Add(JobId job, PointBatch batch);
  // Many at once, as a FrameMaker (series_frames.h) made them. As Append; kInvalid also when the
  // frames are not whole.
  Result<size_t> AppendFrames(JobId job, std::string_view frames);
  // All that was appended so far. After an error it is tried again by the next one.
  Status Sync();

  // By name; empty if there are none. `resumes` are the job's: other ones than those of the
  // call before cost a scan of the file.
  Result<std::vector<SeriesSummary>> Summaries(JobId job, const Resumes& resumes = {}) const;
  // In order of step, then time; kNotFound names the nearest series.
  Result<std::vector<SeriesPoint>> Read(JobId job, std::string_view name,
                                        bool with_abandoned = false,
                                        const Resumes& resumes = {}) const;
  // As Read, but every point that was sent, also when one came later for the same step.
  Result<std::vector<SeriesPoint>> History(JobId job, std::string_view name,
                                           const Resumes& resumes = {}) const;
  // The same points some at a time, for series that may be long (series_walk.h). kNotFound as Read.
  // The store outlives the walk.
  Result<SeriesWalk> Walk(JobId job, std::string_view name, WalkOrder order, bool with_abandoned,
                          const Resumes& resumes = {}) const;
  // History when it has at most `most` points, read where they lie; empty if there are none.
  // nullopt: there may be more.
  Result<std::optional<std::vector<SeriesPoint>>> ShortHistory(JobId job, std::string_view name,
                                                               uint64_t most,
                                                               const Resumes& resumes = {}) const;
  // About two points for each of `query.width` pixels, for a chart: every one of them is a
  // point that Read gives, and the lowest and highest of each part are among them. All points
  // when they are few. kNotFound as Read.
  Result<std::vector<SeriesPoint>> Sample(JobId job, std::string_view name,
                                          const SampleQuery& query,
                                          const Resumes& resumes = {}) const;
  // The same when it can be told at once, of a series whose outline is in memory. nullopt: ask
  // Sample, which may read files.
  std::optional<std::vector<SeriesPoint>> SampleAtHand(JobId job, std::string_view name,
                                                       const SampleQuery& query,
                                                       const Resumes& resumes = {}) const;
  Status Remove(JobId job);
  // The job is finished: with the next Sync what is held in memory for it goes, and an index stays
  // that makes its summaries and outline quick to read again.
  void Close(JobId job);

 private:
  struct Parts;
  explicit SeriesStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
