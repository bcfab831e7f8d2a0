#include "base/exec/thread_pool.h"

#include "base/exec/mutex.h"

#include <algorithm>
#include <utility>

namespace athanor {

ThreadPool::ThreadPool(size_t threads) {
  const size_t count = std::max<size_t>(threads, 1);
  threads_.reserve(count);
  for (size_t i = 0; i < count; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() { Stop(); }

bool ThreadPool::Submit(Task task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
    queue_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void ThreadPool::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadPool::Work() {
  for (;;) {
    Task task;
    {
      MutexLock lock(mutex_);
      wake_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace athanor
