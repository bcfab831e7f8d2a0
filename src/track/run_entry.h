// One run as RunBook holds it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/runs/run_rows.h"
#include "record/series/series_store.h"

namespace athanor {

// Params, tags and metrics name their keys by number; RunBook::KeyName has the words.
struct RunLabel {
  uint32_t key = 0;
  std::string value;
};

struct RunMetric {
  uint32_t key = 0;
  double last = 0;
  int64_t step = 0;  // 0 also when there is none
  int64_t wall_ms = 0;
  double min = 0;  // of finite values; NaN: there is none
  double max = 0;
  uint64_t count = 0;
};

struct RunEntry {
  RunRow row;
  std::vector<RunLabel> params;  // by key number
  std::vector<RunLabel> tags;
  std::vector<RunMetric> metrics;
  std::vector<InputRow> inputs;
  std::vector<ModelLinkRow> links;
  Resumes resumes;
  bool stale = true;   // its metrics are to be read again
  uint32_t place = 0;  // in the RunTable
};

// The metric of that key; null: there is none.
const RunMetric* FindMetric(const RunEntry& run, uint32_t key);

}  // namespace athanor
