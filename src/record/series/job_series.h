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
  bool open = false;
  bool outlined = true;  // the pyramids are complete; otherwise they are empty
  uint64_t epoch = 0;    // how often it was dropped
  std::string path;      // of the file; set when it was opened
  uint64_t length = 0;   // of the file, up to which it is valid
  std::vector<Series> series;
  std::map<std::string, size_t, std::less<>> by_name;  // to `series`
  std::unordered_map<uint32_t, size_t> by_id;          // to `series`
  uint32_t next_id = 0;
  std::map<SeriesChannel, uint64_t> last_seq;
  Resumes resumes;           // that the summaries use
  uint64_t indexed = 0;      // length that the index next to the file covers
  uint64_t index_bytes = 0;  // of the index itself
  std::set<std::pair<uint64_t, uint64_t>> reported;  // damage: offset, bytes
  size_t chunks = 0;                                 // in all pyramids
  size_t name_bytes = 0;                             // of all names
  std::atomic<size_t> bytes{0};                      // its approximate size; set by Weigh

  void Forget();
  void Heed(const Resumes& now);
  // The seq of the last point of the batch's channel.
  std::optional<uint64_t> LastOf(const PointBatch& batch) const;
  // Whether a guess of this name would never count.
  bool IsLogged(std::string_view name) const;
  // An id that is already defined keeps its first name.
  void Define(uint32_t id, std::string_view name);
  void Add(const SeriesBlock& block);  // whose names are all defined

  // Loads from an index if it is empty, and makes an index of what is here.
  void Take(SeriesIndex index);
  SeriesIndex Index(JobId job) const;
  // Takes the outline of another state of the same file and length.
  void TakeOutline(JobSeries& other);
  void DropOutline();
  void Weigh();
};

SeriesPoint PointOf(const SeriesBlock& block, const SeriesBlock::Item& item);

}  // namespace athanor
