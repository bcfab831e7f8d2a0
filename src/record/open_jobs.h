// OpenJobs keeps what a store holds in memory per job: made empty at the first
// touch, kept while somebody uses it, and dropped, oldest first, once more than
// `limit` are kept idle. A state is never dropped under a user: two states of one
// job at a time would scan and write the same files without knowing of each other.
//
// Threads: safe from any. A State guards its own content.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "job/ids.h"

namespace athanor {

template <class State>
class OpenJobs {
  struct Slot;

 public:
  explicit OpenJobs(size_t limit) : limit_(limit) {}

  // Holds the state of one job for as long as it lives.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : jobs_(std::exchange(other.jobs_, nullptr)), job_(other.job_), slot_(other.slot_) {}
    ~Lease() {
      if (jobs_ != nullptr) jobs_->Give(job_);
    }
    State* operator->() const { return &slot_->state; }
    State& operator*() const { return slot_->state; }

   private:
    friend class OpenJobs;
    Lease(OpenJobs* jobs, JobId job, Slot* slot) : jobs_(jobs), job_(job), slot_(slot) {}
    OpenJobs* jobs_;
    JobId job_;
    Slot* slot_;
  };

  Lease Take(JobId job) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[job];
    if (slot.users++ == 0 && slot.idle_known) {
      idle_.erase(slot.idle);
      slot.idle_known = false;
    }
    return Lease(this, job, &slot);
  }

  // Forgets the job now, or as soon as its last user is done.
  void Drop(JobId job) {
    const std::lock_guard lock(mutex_);
    const auto at = slots_.find(job);
    if (at == slots_.end()) return;
    at->second.drop = true;
    if (at->second.users == 0) Erase(at);
  }

 private:
  struct Slot {
    State state;
    size_t users = 0;
    bool drop = false;
    bool idle_known = false;
    std::list<JobId>::iterator idle;
  };
  using Slots = std::map<JobId, Slot>;

  void Give(JobId job) {
    const std::lock_guard lock(mutex_);
    const auto at = slots_.find(job);
    Slot& slot = at->second;
    if (--slot.users > 0) return;
    if (slot.drop) {
      Erase(at);
      return;
    }
    slot.idle = idle_.insert(idle_.end(), job);
    slot.idle_known = true;
    if (idle_.size() > limit_) Erase(slots_.find(idle_.front()));
  }

  void Erase(typename Slots::iterator at) {
    if (at->second.idle_known) idle_.erase(at->second.idle);
    slots_.erase(at);
  }

  const size_t limit_;
  std::mutex mutex_;
  Slots slots_;
  std::list<JobId> idle_;  // longest idle first
};

}  // namespace athanor
