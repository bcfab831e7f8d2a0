// OpenJobs keeps what a store holds in memory per job: created empty at the first use, kept while
// it is used, and dropped, longest idle first, when more than `limit` is kept. A state is never
// dropped while it is used: two states of one job at the same time would scan and write the same
// files without knowing about each other.
//
// Either each idle state counts as one, and the excess is dropped at once; or each counts as
// `weigh` says, and the owner calls Trim when it has time for that.
//
// Threads: safe from any. A State guards its own content.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <utility>

#include "base/exec/mutex.h"
#include "job/ids.h"

namespace athanor {

template <class State>
class OpenJobs {
  struct Slot;

 public:
  // Called when a user is done with a state, without any lock of the state.
  using Weigh = std::function<size_t(const State&)>;

  explicit OpenJobs(size_t limit, Weigh weigh = {}) : limit_(limit), weigh_(std::move(weigh)) {}

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
    const MutexLock lock(mutex_);
    return TakeLocked(job);
  }

  // Drops the job now, or as soon as its last user is done.
  void Drop(JobId job) {
    const MutexLock lock(mutex_);
    const auto at = slots_.find(job);
    if (at == slots_.end()) return;
    at->second.drop = true;
    if (at->second.users == 0) Erase(at);
  }

  size_t weight() const {
    const MutexLock lock(mutex_);
    return weight_;
  }

  // Until no more than the limit is kept: `relieve(job, state)` makes an idle state smaller, or
  // says that it may be dropped. It may take long: nothing waits for it.
  template <class Relieve>  // bool(JobId, State&): true: drop it
  void Trim(Relieve relieve) {
    for (;;) {
      MutexLock lock(mutex_);
      if (weight_ <= limit_ || idle_.empty()) return;
      const JobId job = idle_.front();
      const Lease lease = TakeLocked(job);
      lock.unlock();
      if (relieve(job, *lease)) Drop(job);
    }
  }

 private:
  struct Slot {
    State state;
    size_t users = 0;
    size_t weight = 0;
    bool drop = false;
    bool idle_known = false;
    std::list<JobId>::iterator idle;
  };
  using Slots = std::map<JobId, Slot>;

  Lease TakeLocked(JobId job) REQUIRES(mutex_) {
    Slot& slot = slots_[job];
    if (slot.users++ == 0 && slot.idle_known) {
      idle_.erase(slot.idle);
      slot.idle_known = false;
    }
    return Lease(this, job, &slot);
  }

  void Give(JobId job) {
    const MutexLock lock(mutex_);
    const auto at = slots_.find(job);
    Slot& slot = at->second;
    if (--slot.users > 0) return;
    if (slot.drop) {
      Erase(at);
      return;
    }
    slot.idle = idle_.insert(idle_.end(), job);
    slot.idle_known = true;
    weight_ -= slot.weight;
    slot.weight = weigh_ ? weigh_(slot.state) : 1;
    weight_ += slot.weight;
    if (!weigh_ && idle_.size() > limit_) Erase(slots_.find(idle_.front()));
  }

  void Erase(typename Slots::iterator at) REQUIRES(mutex_) {
    if (at->second.idle_known) idle_.erase(at->second.idle);
    weight_ -= at->second.weight;
    slots_.erase(at);
  }

  const size_t limit_;
  const Weigh weigh_;
  mutable Mutex mutex_;
  Slots slots_ GUARDED_BY(mutex_);
  std::list<JobId> idle_ GUARDED_BY(mutex_);  // longest idle first
  size_t weight_ GUARDED_BY(mutex_) = 0;
};

}  // namespace athanor
