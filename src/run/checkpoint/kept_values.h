// KeptValues are the values that a metric had at the steps of a job's checkpoints, over all its
// attempts: a later one did not see the metric when an earlier one saved. They are lines of the
// job's entry `values`; the last line of a step counts.
//
// Threads: one at a time. A line that a crash cut short costs no other line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "link/job_files.h"

namespace athanor {

class KeptValues {
 public:
  // Reads what was kept, unless that is known. Without it, At knows only what it is told.
  Status Load(JobFiles& files);
  // The value at `step`: `now`, if there is one, which is then kept; else what was kept before.
  std::optional<double> At(JobFiles& files, int64_t step, std::optional<double> now);

 private:
  void Read(std::string_view text);
  Status Keep(JobFiles& files, int64_t step, double value);

  bool loaded_ = false;
  uint64_t bytes_ = 0;  // of the entry
  std::map<int64_t, double> values_;
};

}  // namespace athanor
