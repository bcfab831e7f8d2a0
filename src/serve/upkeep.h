// Upkeep is what a server does ten times a second, on a thread of its own: it writes to disk what
// was acknowledged from memory, keeps what the next start would have to compute, and gives back
// memory that is no longer used.
//
// Threads: Start and Stop are the executor's; the work is done in a pool of one thread.
#pragma once

#include "base/exec/clock.h"
#include "base/exec/executor.h"
#include "base/exec/thread_pool.h"
#include "base/log.h"

namespace athanor {

class LogStore;
class RunBook;
class SeriesStore;

class Upkeep {
 public:
  struct Parts {
    Executor& executor;
    const Clock& clock;
    Logger& log;
    LogStore& logs;
    SeriesStore& series;
    RunBook& runs;
  };
  explicit Upkeep(const Parts& parts) : parts_(parts) {}

  void Start();
  // Ends the thread. What comes after that is left to Finish.
  void Stop() { pool_.Stop(); }
  // After everything else has stopped: the last of it, for a second at most.
  void Finish();

 private:
  void Tick();
  void Sync();
  void KeepMetrics();
  void GiveBackMemory();

  const Parts parts_;
  ThreadPool pool_{1};
  // The pool's thread's.
  Millis gave_back_{0};
  Millis kept_at_{0};
  Millis worked_{0};  // CPU time when it last gave back
};

}  // namespace athanor
