// RunWriter makes changes of runs durable, many callers' in one transaction: while one is
// being written, those that come wait for the next.
//
// Threads: Write is called on the executor's thread, and answers there. The pool must have
// one thread, or batches would overtake each other.
#pragma once

#include <functional>
#include <memory>

#include "base/executor.h"
#include "base/pool.h"
#include "base/result.h"
#include "record/runs/run_rows.h"

namespace athanor {

class RunStore;

class RunWriter {
 public:
  using Done = std::function<void(const Status&)>;
  // What is held of a run in memory: its row, and if `whole` what is said about it, too.
  using RowsOf = std::function<RunBatch(JobId run, bool whole)>;

  // `on_loss` (may be empty) is called after a batch could not be kept, once all that came
  // before and with it is settled: what is held in memory is to be read anew. `rows_of` is
  // for WriteSoon only.
  RunWriter(RunStore& store, Pool& pool, Executor& executor, std::function<void()> on_loss = {},
            RowsOf rows_of = {});
  ~RunWriter();

  // `done` (may be empty) comes when `batch` and all before it are durable, or were not
  // kept. An empty batch waits for those before it only.
  void Write(RunBatch batch, Done done);
  // For what can be made again from elsewhere (a job's run, from the job): before the next
  // Write, or by and by, so that a burst of them keeps nobody else waiting for the store. It
  // is asked for then: until then a run costs its id, however often it changes.
  void WriteSoon(JobId run, bool whole);

 private:
  struct Parts;
  // Shared with the tasks, which may be told after the writer is gone.
  std::shared_ptr<Parts> parts_;
};

}  // namespace athanor
