// A shared mutex in which a writer waits only for the threads that are reading now, not for later
// ones. Otherwise, with many readers one after the other, a writer would never get its turn. A
// thread that is reading must not lock it again.
#pragma once

#include <pthread.h>

#include "base/exec/mutex.h"

namespace athanor {

class ATHANOR_THREAD_RULE(capability("mutex")) FairSharedMutex {
 public:
  FairSharedMutex() {
    pthread_rwlockattr_t wanted;
    pthread_rwlockattr_init(&wanted);
    pthread_rwlockattr_setkind_np(&wanted, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &wanted);
    pthread_rwlockattr_destroy(&wanted);
  }
  ~FairSharedMutex() { pthread_rwlock_destroy(&lock_); }
  FairSharedMutex(const FairSharedMutex&) = delete;
  FairSharedMutex& operator=(const FairSharedMutex&) = delete;

  void lock() ACQUIRE() { pthread_rwlock_wrlock(&lock_); }
  void unlock() RELEASE() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() ACQUIRE_SHARED() { pthread_rwlock_rdlock(&lock_); }
  void unlock_shared() RELEASE_SHARED() { pthread_rwlock_unlock(&lock_); }
  // For code that is only reached with the mutex held, in a way that the compiler cannot see.
  void AssertHeld() const ASSERT_HELD() {}
  void AssertHeldShared() const ASSERT_HELD_SHARED() {}

 private:
  pthread_rwlock_t lock_;
};

// Until its scope ends.
class ATHANOR_THREAD_RULE(scoped_lockable) WriteLock {
 public:
  explicit WriteLock(FairSharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~WriteLock() RELEASE() { mutex_.unlock(); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  FairSharedMutex& mutex_;
};

class ATHANOR_THREAD_RULE(scoped_lockable) ReadLock {
 public:
  explicit ReadLock(FairSharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReadLock() RELEASE() { mutex_.unlock_shared(); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  FairSharedMutex& mutex_;
};

}  // namespace athanor
