#include "record/db/checkpointer.h"

#include "record/db/sqlite_connection.h"

namespace athanor {

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Checkpointer::Ask() {
  {
    const std::lock_guard lock(mutex_);
    asked_ = true;
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
  }
  wake_.notify_one();
}

void Checkpointer::Work() {
  auto connection = SqliteConnection::Open(path_, SqliteConnection::Role::kCheckpointer);
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return asked_ || stopping_; });
    if (stopping_) return;
    asked_ = false;
    lock.unlock();
    if (connection) (*connection)->Checkpoint();
    lock.lock();
  }
}

}  // namespace athanor
