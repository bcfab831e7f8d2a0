// HeldFiles keeps files open that were just appended to: the next points of a job often arrive
// within milliseconds. Sync clears it.
//
// Threads: safe from any.
#pragma once

#include <utility>
#include <vector>

#include "base/exec/mutex.h"
#include "base/io/fd.h"
#include "job/ids.h"

namespace athanor {

class HeldFiles {
 public:
  // None, or the job's descriptor, which then belongs to the caller.
  UniqueFd Take(JobId job) {
    const MutexLock lock(mutex_);
    for (auto& [owner, fd] : files_) {
      if (owner == job) return std::exchange(fd, UniqueFd());
    }
    return UniqueFd();
  }
  void Hold(JobId job, UniqueFd fd) {
    const MutexLock lock(mutex_);
    std::erase_if(files_, [job](const auto& held) { return held.first == job || !held.second; });
    if (files_.size() >= kMost) files_.erase(files_.begin());
    files_.emplace_back(job, std::move(fd));
  }
  void Clear() {
    std::vector<std::pair<JobId, UniqueFd>> closed;
    const MutexLock lock(mutex_);
    closed.swap(files_);
  }

 private:
  static constexpr size_t kMost = 16;
  Mutex mutex_;
  std::vector<std::pair<JobId, UniqueFd>> files_ GUARDED_BY(mutex_);  // longest held first
};

}  // namespace athanor
