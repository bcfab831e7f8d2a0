// A Pool runs work that blocks beside the control thread: ThreadPool in the server,
// a virtual one in simulation. Tasks start in the order of submission; results are
// posted back by the task itself, to an Executor. A task must not throw.
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
  // False once stopping: the task was not taken.
  [[nodiscard]] virtual bool Submit(Task task) = 0;
  // Takes nothing more and finishes what was submitted. May be called twice.
  virtual void Stop() = 0;
};

}  // namespace athanor
