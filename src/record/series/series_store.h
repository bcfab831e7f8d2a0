// SeriesStore keeps metric points: append-only, checksummed, exactly once.
//
// Points and what identifies them are in job/point.h; duplicates are dropped. Append returns after
// write(2): the points survive kill -9 of the server; Sync makes them survive a power cut and
// is called every 100 ms. A job's file (series_places.h) is read at the first use, from where its
// index (series_index.h) ends: a torn tail is cut, a damaged record is skipped, and both are
// reported; what is returned is always what was written.
//
// Threads: one thread appends; reads and Sync may come from any thread, and do not make the
// appender wait for the disk or for each other's scans. The files appended to last (16 at most)
// stay open until the next Sync. Memory: about `held_bytes` in all. An append needs a few hundred
// bytes per job and as much for each name, however much was written before; this is kept for tens
// of thousands of jobs. If there is no room for both, outlines for charts are dropped first, and
// read again when they are needed.
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
#include "job/point.h"

namespace athanor {

// One value per step: the newest attempt's; points of older attempts beyond the step at which the
// newer one resumed are `abandoned`. A name with several points that all have step 0 has no steps:
// clients send 0 for none.
struct SeriesPoint {
  std::optional<int64_t> step;
  int64_t wall_ns = 0;
  double value = 0;
  uint32_t attempt = 1;
  uint32_t rank = 0;
  bool abandoned = false;
  bool guessed = false;
};

// The step that an attempt (by number) resumed from; attempts that started from the beginning are
// not in it.
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
  double min = 0;  // NaN if there is no finite value
  double max = 0;
};

inline constexpr size_t kHeldSeriesBytes = 64u << 20;
inline constexpr size_t kMaxSeriesNames = 100'000;  // of one job
inline constexpr std::string_view kTooManyNames = "ATH-R0046";

enum class WalkOrder;
class SeriesWalk;

class SeriesStore {
 public:
  // `on_damage` is called (kCorrupt; from any thread) with what could not be read. It must not call
  // the store.
  using OnDamage = std::function<void(JobId, const Error&)>;
  static Result<std::unique_ptr<SeriesStore>> Open(std::string dir, OnDamage on_damage = {},
                                                   size_t held_bytes = kHeldSeriesBytes);
  ~SeriesStore();

  // How many of the items were new; all are stored or, after an error, none. kExhausted: no space;
  // later appends continue from there. kInvalid: a name is empty or longer than 1,024 bytes;
  // sending the batch again will not help. kInvalid with the id kTooManyNames: the job has 100,000
  // names already; the points of names it has are stored, those of new ones are not and never will
  // be.
  Result<size_t> Append(JobId job, const PointBatch& batch);
  // The same for a sender that does not number its points (their seq is ignored): each is new, and
  // follows the last one of its attempt, host, rank and channel.
  Result<size_t> Add(JobId job, PointBatch batch);
  // Many at once, as a FrameMaker (series_frames.h) made them. As Append; kInvalid also if the
  // frames are not complete.
  Result<size_t> AppendFrames(JobId job, std::string_view frames);
  // Syncs everything appended so far. After an error, the next call tries again.
  Status Sync();

  // By name; empty if there are none. `resumes` are the job's: other ones than those of the
  // call before cost a scan of the file.
  Result<std::vector<SeriesSummary>> Summaries(JobId job, const Resumes& resumes = {}) const;
  // In order of step, then time; kNotFound names the nearest series.
  Result<std::vector<SeriesPoint>> Read(JobId job, std::string_view name,
                                        bool with_abandoned = false,
                                        const Resumes& resumes = {}) const;
  // As Read, but every point that was sent, even if a later one came for the same step.
  Result<std::vector<SeriesPoint>> History(JobId job, std::string_view name,
                                           const Resumes& resumes = {}) const;
  // The same points some at a time, for long series (series_walk.h). kNotFound as Read. The store
  // outlives the walk.
  Result<SeriesWalk> Walk(JobId job, std::string_view name, WalkOrder order, bool with_abandoned,
                          const Resumes& resumes = {}) const;
  // The History if it has at most `most` points, read directly from the file; empty if there are
  // none. nullopt: there may be more.
  Result<std::optional<std::vector<SeriesPoint>>> ShortHistory(JobId job, std::string_view name,
                                                               uint64_t most,
                                                               const Resumes& resumes = {}) const;
  // About two points for each of `query.width` pixels, for a chart: each of them is a point that
  // Read returns, and the lowest and highest of each part are among them. All points if there are
  // few. kNotFound as Read.
  Result<std::vector<SeriesPoint>> Sample(JobId job, std::string_view name,
                                          const SampleQuery& query,
                                          const Resumes& resumes = {}) const;
  // The same if it is known at once, for a series whose outline is in memory. nullopt: call Sample,
  // which may read files.
  std::optional<std::vector<SeriesPoint>> SampleAtHand(JobId job, std::string_view name,
                                                       const SampleQuery& query,
                                                       const Resumes& resumes = {}) const;
  Status Remove(JobId job);
  // The job has ended: the next Sync drops its state from memory and leaves an index, from which
  // its summaries and outline can be read quickly.
  void Close(JobId job);

 private:
  struct Parts;
  explicit SeriesStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
