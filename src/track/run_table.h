// The columns that a search reads of every run, each contiguous in memory: the runs themselves are
// scattered, and reading a million of them takes longer than everything else in a search. It
// follows RunBook's runs; a metric gets a column when a search sorts or filters by it.
//
// Threads: its owner guards it; const members may be called at the same time.
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
  void Remove(const RunEntry& run);  // another run may get its position
  void Clear();
  void Reserve(size_t runs);

  size_t size() const { return runs_.size(); }
  RunEntry& run(size_t place) const { return *runs_[place]; }
  std::span<const int64_t> experiments() const { return experiments_; }
  std::span<const int64_t> started() const { return started_; }
  std::span<const uint8_t> flags() const { return flags_; }
  size_t stale() const { return stale_; }  // how many are
  // Changes whenever a run is no longer at its position.
  uint64_t moves() const { return moves_; }

  // The last value of a metric of each row; empty: it has no column, or not a complete one yet.
  std::span<const double> Column(uint32_t metric) const;
  // Adds up to `most` rows to the metric's column, which replaces the oldest if there are many.
  // False: it is complete.
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
