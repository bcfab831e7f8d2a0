// Removal deletes jobs and runs that have ended, with everything that was stored about them: the
// record first, so that a removal that is cut off leaves files that nothing names (`ath gc`), never
// a job without its files.
//
// Threads: called on the executor's thread; `done` is called from any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "base/result.h"
#include "job/ids.h"
#include "record/layout.h"
#include "record/runs/run_rows.h"

namespace athanor {

class Engine;
class JobStore;
class LogStore;
class RunWriter;
class SeriesStore;

class Removal {
 public:
  using Done = std::function<void(const Status&)>;
  struct Parts {
    Executor& executor;
    Engine& engine;
    JobStore& jobs;
    LogStore& logs;
    SeriesStore& series;
    RunWriter& run_writer;
    Pool& readers;  // removes files: checkpoints may be many and large
    StoreLayout layout;
    // Takes a run out of memory; returns what makes that durable.
    std::function<RunBatch(JobId)> forget_run;
    // The folder in which a run stores its artifacts here; empty: it has none here.
    std::function<std::string(JobId)> artifacts;
  };
  explicit Removal(Parts parts) : parts_(std::move(parts)) {}

  // kConflict for a live job.
  void RemoveJob(JobId id, Done done);
  // The same for a run, whether it is a job's or not.
  void RemoveRun(JobId id, Done done);
  // One after the other; an error ends it.
  void RemoveRuns(std::vector<JobId> ids, Done done);

 private:
  void RemoveFrom(std::shared_ptr<const std::vector<JobId>> ids, size_t at, Done done);
  void RemoveFiles(JobId id, const Done& done);

  Parts parts_;
};

}  // namespace athanor
