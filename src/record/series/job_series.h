// What the store holds in memory for one job: what an append needs (names, last seqs, summaries),
// which is small and does not grow with the points, and the outline of each series
// (series_pyramid.h), which can be dropped and read again from the index and the file.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/exec/mutex.h"
#include "record/series/series_file.h"
#include "record/series/series_index.h"
#include "record/series/series_merge.h"
#include "record/series/series_pyramid.h"
#include "record/series/series_store.h"

namespace athanor {

// attempt, host, rank, channel
using SeriesChannel = std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>;

struct Series {
  std::string name;
  uint32_t id = 0;  // used by new points
  RunningSummary summary;
  SeriesPyramid pyramid;
};

struct JobSeries {
  Mutex mutex;  // guards everything below except `bytes`
  bool open GUARDED_BY(mutex) = false;
  bool outlined GUARDED_BY(mutex) = true;  // the pyramids are complete; otherwise they are empty
  uint64_t epoch GUARDED_BY(mutex) = 0;    // how often it was dropped
  std::string path GUARDED_BY(mutex);      // of the file; set when it was opened
  uint64_t length GUARDED_BY(mutex) = 0;   // of the file, up to which it is valid
  std::vector<Series> series GUARDED_BY(mutex);
  std::map<std::string, size_t, std::less<>> by_name GUARDED_BY(mutex);  // to `series`
  std::unordered_map<uint32_t, size_t> by_id GUARDED_BY(mutex);          // to `series`
  uint32_t next_id GUARDED_BY(mutex) = 0;
  std::map<SeriesChannel, uint64_t> last_seq GUARDED_BY(mutex);
  Resumes resumes GUARDED_BY(mutex);           // that the summaries use
  uint64_t indexed GUARDED_BY(mutex) = 0;      // length that the index next to the file covers
  uint64_t index_bytes GUARDED_BY(mutex) = 0;  // of the index itself
  std::set<std::pair<uint64_t, uint64_t>> reported GUARDED_BY(mutex);  // damage: offset, bytes
  size_t chunks GUARDED_BY(mutex) = 0;                                 // in all pyramids
  size_t name_bytes GUARDED_BY(mutex) = 0;                             // of all names
  std::atomic<size_t> bytes{0};  // its approximate size; set by Weigh

  void Forget() REQUIRES(mutex);
  void Heed(const Resumes& now) REQUIRES(mutex);
  // The seq of the last point of the batch's channel.
  std::optional<uint64_t> LastOf(const PointBatch& batch) const REQUIRES(mutex);
  // Whether a guess of this name would never count.
  bool IsLogged(std::string_view name) const REQUIRES(mutex);
  // An id that is already defined keeps its first name.
  void Define(uint32_t id, std::string_view name) REQUIRES(mutex);
  void Add(const SeriesBlock& block) REQUIRES(mutex);  // whose names are all defined

  // Loads from an index if it is empty, and makes an index of what is here.
  void Take(SeriesIndex index) REQUIRES(mutex);
  SeriesIndex Index(JobId job) const REQUIRES(mutex);
  // Takes the outline of another state of the same file and length.
  void TakeOutline(JobSeries& other) REQUIRES(mutex, other.mutex);
  void DropOutline() REQUIRES(mutex);
  void Weigh() REQUIRES(mutex);
};

SeriesPoint PointOf(const SeriesBlock& block, const SeriesBlock::Item& item);

}  // namespace athanor
