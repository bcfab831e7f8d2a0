// ThreadPool is a Pool of real threads, for SQLite, hashing, archives. Stop joins them.
#pragma once

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "base/exec/mutex.h"
#include "base/exec/pool.h"

namespace athanor {

class ThreadPool final : public Pool {
 public:
  explicit ThreadPool(size_t threads);
  ~ThreadPool() override;  // Stop()
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] bool Submit(Task task) override;
  void Stop() override;

 private:
  void Work();

  Mutex mutex_;
  CondVar wake_;
  std::deque<Task> queue_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace athanor
