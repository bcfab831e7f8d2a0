// RunWriter makes changes of runs durable, those of many callers in one transaction: while one is
// written, new changes wait for the next.
//
// Threads: Write is called on the executor's thread, and answers there. The pool must have one
// thread, or batches could overtake each other.
#pragma once

#include <functional>
#include <memory>

#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "base/result.h"
#include "record/runs/run_rows.h"

namespace athanor {

class RunStore;

class RunWriter {
 public:
  using Done = std::function<void(const Status&)>;
  // What is in memory for a run: its row and, if `whole`, its keys and values, too.
  using RowsOf = std::function<RunBatch(JobId run, bool whole)>;

  // `on_loss` (may be empty) is called after a batch could not be stored, when everything before
  // and with it is settled: memory must then be loaded again. `rows_of` is for WriteSoon only.
  RunWriter(RunStore& store, Pool& pool, Executor& executor, std::function<void()> on_loss = {},
            RowsOf rows_of = {});
  ~RunWriter();

  // `done` (may be empty) is called when `batch` and all before it are durable, or were not stored.
  // An empty batch only waits for those before it.
  void Write(RunBatch batch, Done done);
  // For data that can be made again from elsewhere (a job's run, from the job). It is written
  // before the next Write, or later, so that a burst of changes does not make others wait for the
  // store. The rows are requested only then: until then a run costs only its id, however often it
  // changes.
  void WriteSoon(JobId run, bool whole);

 private:
  struct Parts;
  // Shared with the tasks, which may be called after the writer is gone.
  std::shared_ptr<Parts> parts_;
};

}  // namespace athanor
