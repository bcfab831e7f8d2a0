// SilenceWatch tells when an agent has fallen silent and when it reports again. A silence is not an
// event and changes no record (job/shown.h), so nobody else would tell those who watch a job.
//
// Threads: the executor's.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/executor.h"
#include "job/record.h"

namespace athanor {

class SilenceWatch {
 public:
  struct Parts {
    Executor& executor;
    const Clock& clock;
    std::function<std::vector<const JobRecord*>()> holding;  // jobs that hold room
    std::function<void(JobId)> changed;
  };
  explicit SilenceWatch(Parts parts) : parts_(std::move(parts)) {}

  // Looks every few seconds, as long as the executor runs.
  void Start();

 private:
  void Look();

  Parts parts_;
  std::set<JobId> silent_;  // when last looked
};

}  // namespace athanor
