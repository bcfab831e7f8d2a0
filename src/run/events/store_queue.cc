#include "run/events/store_queue.h"

#include <utility>

#include "base/exec/mutex.h"

namespace athanor {

StoreQueue::~StoreQueue() {
  {
    const MutexLock lock(mutex_);
    over_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void StoreQueue::Add(Task task) {
  if (!own_thread_) return task();
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_all();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
}

bool StoreQueue::idle() const {
  const MutexLock lock(mutex_);
  return tasks_.empty();
}

void StoreQueue::Work() {
  MutexLock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this]() REQUIRES(mutex_) { return over_ || !tasks_.empty(); });
    if (over_) return;
    const Task task = std::move(tasks_.front());
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
  }
}

}  // namespace athanor
