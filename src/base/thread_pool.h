// ThreadPool runs blocking work (SQLite, hashing, archives) beside the control
// thread. Tasks start in the order of submission; results are posted back by
// the task itself, to an Executor. A task must not throw.
//
// Threads: Submit is safe from any thread, also from a task. Stop is called by
// the owner, not from a task.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace athanor {

class ThreadPool {
 public:
  using Task = std::function<void()>;

  explicit ThreadPool(size_t threads);
  ~ThreadPool();  // Stop()
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // False once stopping: the task was not taken.
  [[nodiscard]] bool Submit(Task task);
  // Takes nothing more, finishes what was submitted, joins. May be called twice.
  void Stop();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;  // GUARDED_BY(mutex_)
  bool stopping_ = false;   // GUARDED_BY(mutex_)
  std::vector<std::thread> threads_;
};

}  // namespace athanor
