#include "run/events/event_copy.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/exec/mutex.h"
#include "eventfile/event_reader.h"
#include "eventfile/tfrecord.h"

namespace athanor {

Result<bool> EventCopy::Flush() {
  MutexLock lock(mutex_);
  if (!error_ && !busy_ && !lost_ && (!placed_ || !opened_ || !buffer_.empty())) {
    busy_ = true;
    lock.unlock();
    options_.queue.Add([this] { Store(); });
    lock.lock();
  }
  if (error_) return Fail(*std::exchange(error_, std::nullopt));
  return opened_ && !failing_ && !lost_ && options_.waiting < kMostWaiting;
}

void EventCopy::Add(std::string_view payload) {
  const MutexLock lock(mutex_);
  if (passed_ > 0) {
    --passed_;
    return;
  }
  const size_t before = buffer_.size();
  AppendTfRecord(buffer_, payload);
  options_.waiting += buffer_.size() - before;
}

bool EventCopy::lost() const {
  const MutexLock lock(mutex_);
  return lost_ && !busy_;
}

void EventCopy::Store() {
  if (auto open = Open(); !open) {
    const MutexLock lock(mutex_);
    return Failed(open.error());
  }
  while (StorePiece()) {
  }
}

Status EventCopy::Open() {
  if (name_.empty()) {
    ATHANOR_TRY(name_, options_.place());
    if (options_.opened) options_.opened();
  }
  {
    const MutexLock lock(mutex_);
    placed_ = true;
    if (opened_) return Ok();
  }
  return Continue();
}

// Goes on with the entry if there is one; a torn end is cut off.
Status EventCopy::Continue() {
  uint64_t passed = 0;
  auto fd = options_.files.Read(name_);
  if (!fd && fd.error().code != ErrorCode::kNotFound) return Fail(fd.error());
  if (fd) {
    struct stat info {};
    if (::fstat(fd->get(), &info) != 0) return FailErrno("stat " + name_, errno);
    EventReader reader(std::move(*fd));
    ATHANOR_TRY([[maybe_unused]] const bool more,
                reader.Poll([&](uint64_t, std::string_view) { ++passed; }));
    size_ = reader.offset();
    if (static_cast<uint64_t>(info.st_size) > size_) {
      ATHANOR_TRY([[maybe_unused]] const auto cut, options_.files.Append(name_, size_, ""));
    }
  }
  const MutexLock lock(mutex_);
  passed_ = passed;
  opened_ = true;
  return Ok();
}

// False: that was all for now.
bool EventCopy::StorePiece() {
  std::string piece;
  {
    const MutexLock lock(mutex_);
    if (buffer_.empty()) {
      busy_ = failing_ = false;
      return false;
    }
    piece.swap(buffer_);
  }
  const auto stored = options_.files.Append(name_, size_, piece);
  if (stored) {
    size_ = *stored;
    options_.waiting -= piece.size();
    return true;
  }
  const MutexLock lock(mutex_);
  if (stored.error().code == ErrorCode::kConflict) {
    options_.waiting -= piece.size() + buffer_.size();
    buffer_.clear();
    lost_ = true;
    busy_ = false;
    return false;
  }
  buffer_.insert(0, piece);
  Failed(stored.error());
  return false;
}

void EventCopy::Failed(const Error& error) {
  error_ = error;
  failing_ = true;
  busy_ = false;
}

}  // namespace athanor
