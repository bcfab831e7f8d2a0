// A Pool runs blocking work outside the control thread: ThreadPool in the server, a virtual one in
// simulation. Tasks start in the order of submission; a task posts its result back to an Executor
// itself. A task must not throw.
//
// Threads: Submit is safe from any thread, also from a task. Stop is called by the
// owner, not from a task.
#pragma once

#include <functional>

namespace athanor {

class Pool {
 public:
  using Task = std::function<void()>;

  virtual ~Pool() = default;
  // False while stopping: the task was not accepted.
  [[nodiscard]] virtual bool Submit(Task task) = 0;
  // Accepts no more tasks and finishes those that were submitted. May be called twice.
  virtual void Stop() = 0;
};

}  // namespace athanor
