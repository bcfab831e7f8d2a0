// Mutexes whose rules the compiler checks: a member marked GUARDED_BY(mutex_) may only be touched
// by code that holds `mutex_`, and a function marked REQUIRES(mutex_) only be called by it. Builds
// with clang fail otherwise (-Wthread-safety); other compilers see std::mutex and nothing more.
//
//   MutexLock lock(mutex_);
//   ready_.wait(lock, [this]() REQUIRES(mutex_) { return done_; });
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#if defined(__clang__)
#define ATHANOR_THREAD_RULE(x) __attribute__((x))
#else
#define ATHANOR_THREAD_RULE(x)
#endif

#define GUARDED_BY(mutex) ATHANOR_THREAD_RULE(guarded_by(mutex))
#define REQUIRES(...) ATHANOR_THREAD_RULE(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) ATHANOR_THREAD_RULE(requires_shared_capability(__VA_ARGS__))
#define ACQUIRE(...) ATHANOR_THREAD_RULE(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) ATHANOR_THREAD_RULE(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) ATHANOR_THREAD_RULE(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) ATHANOR_THREAD_RULE(release_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) ATHANOR_THREAD_RULE(try_acquire_capability(__VA_ARGS__))
#define ASSERT_HELD(...) ATHANOR_THREAD_RULE(assert_capability(__VA_ARGS__))
#define ASSERT_HELD_SHARED(...) ATHANOR_THREAD_RULE(assert_shared_capability(__VA_ARGS__))
// Where the analysis cannot follow, with a comment that says why the rule holds.
#define UNCHECKED_LOCKS ATHANOR_THREAD_RULE(no_thread_safety_analysis)

namespace athanor {

class ATHANOR_THREAD_RULE(capability("mutex")) Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  // For code that is only reached with the mutex held, in a way that the compiler cannot see.
  void AssertHeld() const ASSERT_HELD() {}

 private:
  friend class MutexLock;
  friend class TryMutexLock;
  std::mutex mutex_;
};

// Holds the mutex until its scope ends; may let go of it in between.
class ATHANOR_THREAD_RULE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// Holds the mutex if nobody else did. What it guards may be touched where held() is true, which the
// analysis takes on trust.
class ATHANOR_THREAD_RULE(scoped_lockable) TryMutexLock {
 public:
  explicit TryMutexLock(Mutex& mutex) ACQUIRE(mutex) UNCHECKED_LOCKS
      : lock_(mutex.mutex_, std::try_to_lock) {}
  ~TryMutexLock() RELEASE() {}
  TryMutexLock(const TryMutexLock&) = delete;
  TryMutexLock& operator=(const TryMutexLock&) = delete;
  bool held() const { return lock_.owns_lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
};

// As std::condition_variable. The predicate needs REQUIRES(mutex) to touch what the mutex guards.
class CondVar {
 public:
  void notify_one() noexcept { wake_.notify_one(); }
  void notify_all() noexcept { wake_.notify_all(); }
  void wait(MutexLock& lock) { wake_.wait(lock.lock_); }
  template <class Ready>
  void wait(MutexLock& lock, Ready ready) UNCHECKED_LOCKS {
    wake_.wait(lock.lock_, std::move(ready));
  }
  template <class Rep, class Period>
  std::cv_status wait_for(MutexLock& lock, std::chrono::duration<Rep, Period> longest) {
    return wake_.wait_for(lock.lock_, longest);
  }
  template <class Rep, class Period, class Ready>
  bool wait_for(MutexLock& lock, std::chrono::duration<Rep, Period> longest,
                Ready ready) UNCHECKED_LOCKS {
    return wake_.wait_for(lock.lock_, longest, std::move(ready));
  }
  template <class Clock, class Duration>
  std::cv_status wait_until(MutexLock& lock, std::chrono::time_point<Clock, Duration> end) {
    return wake_.wait_until(lock.lock_, end);
  }
  template <class Clock, class Duration, class Ready>
  bool wait_until(MutexLock& lock, std::chrono::time_point<Clock, Duration> end,
                  Ready ready) UNCHECKED_LOCKS {
    return wake_.wait_until(lock.lock_, end, std::move(ready));
  }

 private:
  std::condition_variable wake_;
};

}  // namespace athanor
