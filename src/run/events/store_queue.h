// StoreQueue runs tasks one after the other: at once where what they store is on this machine, and
// on a thread of its own where each may take as long as the server is away. Whoever reads what a
// script writes must not wait for that: rules and the hang detection depend on it.
//
// Threads: Add belongs to one; tasks may ask idle(). The destructor waits for the task that runs;
// those behind it never run.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/exec/mutex.h"

namespace athanor {

class StoreQueue {
 public:
  using Task = std::function<void()>;

  explicit StoreQueue(bool own_thread) : own_thread_(own_thread) {}
  ~StoreQueue();

  void Add(Task task);
  // Nothing runs or waits.
  bool idle() const;

 private:
  void Work();

  const bool own_thread_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::deque<Task> tasks_ GUARDED_BY(mutex_);  // the first one runs
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // once it was needed
};

}  // namespace athanor
