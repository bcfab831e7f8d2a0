// What a search looks at of every run, side by side in memory: runs themselves lie scattered, and
// to touch ten thousand of them takes longer than everything else a search does. It follows
// RunBook's runs; metrics have a column once somebody sorts or filters by them.
//
// Threads: as its owner guards it; const members may be called at the same time.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "track/run_entry.h"

namespace athanor {

class RunTable {
 public:
  struct Row {
    RunEntry* run = nullptr;
    int64_t experiment = 0;
    int64_t started_ms = 0;
    bool deleted = false;
    bool stale = false;
  };

  void Add(RunEntry& run);           // gives it its place
  void Update(RunEntry& run);  // its row, or whether it is stale, has changed
  void UpdateMetrics(const RunEntry& run);
  void Remove(const RunEntry& run);  // another run may take its place
  void Clear();

  std::span<const Row> rows() const { return rows_; }

  // The last value of a metric of each row; empty: it has no column.
  std::span<const double> Column(uint32_t metric) const;
  void AddColumn(uint32_t metric);  // in place of the oldest, when there are many
  // Whether a value of a column says that the run has no such metric. Not a NaN that was logged.
  static bool IsMissing(double value);

 private:
  std::vector<Row> rows_;
  std::vector<std::pair<uint32_t, std::vector<double>>> columns_;  // oldest first
};

}  // namespace athanor
