// What uses the disk: each job by kind, and what jobs share. Every file of the home is counted
// once, by the blocks it occupies, like du(1), so that the parts add up to `du -s` of the home.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "job/ids.h"
#include "job/record.h"
#include "record/layout.h"

namespace athanor {

struct JobDisk {
  JobId id;
  uint64_t logs = 0;
  uint64_t metrics = 0;  // points, and event files of TensorBoard
  uint64_t checkpoints = 0;
  uint64_t outputs = 0;  // and artifacts
  uint64_t scratch = 0;  // of attempts, and captured steps
  uint64_t bytes() const { return logs + metrics + checkpoints + outputs + scratch; }
};

struct DiskUse {
  struct Part {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<JobDisk> jobs;  // the largest first
  std::vector<Part> shared;   // the largest first
  uint64_t bytes = 0;         // of all
};

// Files must be attributed to jobs: add every job, then call Count.
class DiskCount {
 public:
  explicit DiskCount(StoreLayout layout) : layout_(std::move(layout)) {}
  void Add(const JobRecord& record);
  // `jobs_only`: leaves out what belongs to no job, if the folder shows that.
  DiskUse Count(bool jobs_only) const;

 private:
  class Walk;
  StoreLayout layout_;
  std::unordered_map<std::string, JobId> jobs_;     // by id; of attempts too
  std::unordered_map<std::string, JobId> outputs_;  // by blob; JobId{}: of several jobs
};

}  // namespace athanor
