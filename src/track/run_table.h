// What a search looks at of every run, each kind side by side in memory: runs themselves lie
// scattered, and to touch a million of them takes longer than everything else a search does. It
// follows RunBook's runs; metrics have a column once somebody sorts or filters by them.
//
// Threads: as its owner guards it; const members may be called at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "track/run_entry.h"

namespace athanor {

class RunTable {
 public:
  enum Flag : uint8_t { kDeleted = 1, kStale = 2 };

  void Add(RunEntry& run);           // gives it its place
  void Update(const RunEntry& run);  // its row, or whether it is stale, has changed
  void UpdateMetrics(const RunEntry& run);
  void Remove(const RunEntry& run);  // another run may take its place
  void Clear();
  void Reserve(size_t runs);

  size_t size() const { return runs_.size(); }
  RunEntry& run(size_t place) const { return *runs_[place]; }
  std::span<const int64_t> experiments() const { return experiments_; }
  std::span<const int64_t> started() const { return started_; }
  std::span<const uint8_t> flags() const { return flags_; }
  size_t stale() const { return stale_; }  // how many are
  // Changes whenever a run that was at a place is no longer there.
  uint64_t moves() const { return moves_; }

  // The last value of a metric of each row; empty: it has no column, or not all of it yet.
  std::span<const double> Column(uint32_t metric) const;
  // Adds up to `most` rows to the metric's column, which takes the place of the oldest when there
  // are many. False: it is whole.
  bool FillColumn(uint32_t metric, size_t most);
  // Whether a value of a column says that the run has no such metric. Not a NaN that was logged.
  static bool IsMissing(double value);

 private:
  struct MetricColumn {
    uint32_t metric = 0;
    std::vector<double> values;  // of the first places; of all when it is whole
  };

  std::vector<RunEntry*> runs_;
  std::vector<int64_t> experiments_;
  std::vector<int64_t> started_;
  std::vector<uint8_t> flags_;
  std::vector<MetricColumn> columns_;  // oldest first
  size_t stale_ = 0;
  uint64_t moves_ = 0;
};

}  // namespace athanor
