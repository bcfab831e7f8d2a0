// ThreadPool is a Pool of real threads, for SQLite, hashing, archives. Stop joins them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

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

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;  // GUARDED_BY(mutex_)
  bool stopping_ = false;   // GUARDED_BY(mutex_)
  std::vector<std::thread> threads_;
};

}  // namespace athanor
