#include "run/agent/folder_watch.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/exec/mutex.h"

namespace athanor {
namespace {

enum class Look { kThere, kGone, kUnsure };  // unsure: a disk that does not answer is not gone

template <class Identity>
Look LookAt(const std::string& dir, Identity* identity) {
  struct stat info {};
  if (::stat(dir.c_str(), &info) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? Look::kGone : Look::kUnsure;
  }
  *identity = {info.st_dev, info.st_ino};
  return Look::kThere;
}

}  // namespace

FolderWatch::FolderWatch(Options options) : options_(std::move(options)) {
  Identity found;
  if (LookAt(options_.dir, &found) == Look::kThere) first_ = found;
  thread_ = std::thread([this] { Loop(); });
}

FolderWatch::~FolderWatch() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool FolderWatch::Ended(Millis wait) {
  MutexLock lock(mutex_);
  return wake_.wait_for(lock, wait, [this]() REQUIRES(mutex_) { return ended_; });
}

void FolderWatch::Loop() {
  // Twice in a row: another folder may be about to replace it.
  for (int missed = 0; missed < 2;) {
    if (Ended(options_.look_every)) return;
    Identity found;
    const Look look = LookAt(options_.dir, &found);
    if (look == Look::kUnsure) continue;
    const bool there = look == Look::kThere && (!first_ || *first_ == found);
    missed = there ? 0 : missed + 1;
  }
  options_.gone();
  if (!Ended(options_.patience)) options_.late();
}

}  // namespace athanor
