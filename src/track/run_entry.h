// One run as RunBook holds it. There may be a million: what few of them have is stored separately.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "record/runs/run_metric.h"
#include "record/runs/run_rows.h"
#include "record/series/series_store.h"
#include "track/run_labels.h"

namespace athanor {

// What most runs do not have.
struct RunExtra {
  std::string artifacts;  // URI, if it is not its experiment's usual one
  std::vector<InputRow> inputs;
  std::vector<ModelLinkRow> links;
  Resumes resumes;
  int64_t deleted_ms = 0;
};

struct RunEntry {
  JobId id;
  int64_t experiment = 0;
  int64_t started_ms = 0;
  int64_t ended_ms = 0;  // 0: not yet
  std::string name;
  RunLabels params;
  RunLabels tags;
  std::vector<RunMetric> metrics;  // by key number
  std::unique_ptr<RunExtra> extra;
  RunEntry* next_named = nullptr;  // of RunIndex
  RunEntry* next_tail = nullptr;
  uint32_t user = 0;       // RunBook::KeyName
  uint32_t place = 0;      // in the RunTable
  uint32_t touched = 0;    // how often new points came
  uint32_t read = 0;       // `touched` as of the metrics held here
  uint32_t touched_s = 0;  // when they came, of the book's clock
  RunStatus status = RunStatus::kRunning;
  bool deleted = false;
  bool is_job = false;
  bool kept = false;     // KeptMetrics has its metrics as they are here
  bool queued = false;   // to be kept
  bool storing = false;  // points are just being stored
  uint8_t keeps = 0;     // how often it was kept

  bool stale() const { return touched != read; }  // its metrics must be read again
  const RunExtra& more() const;
  RunExtra& AddMore();
};

// The metric of that key; null: there is none.
const RunMetric* FindMetric(const RunEntry& run, uint32_t key);

}  // namespace athanor
