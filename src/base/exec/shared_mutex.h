// A std::shared_mutex in which a writer waits only for the threads that are reading now, not for
// later ones. Otherwise, with many readers one after the other, a writer would never get its turn.
// A thread that is reading must not lock it again.
#pragma once

#include <pthread.h>

namespace athanor {

class FairSharedMutex {
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

  void lock() { pthread_rwlock_wrlock(&lock_); }
  bool try_lock() { return pthread_rwlock_trywrlock(&lock_) == 0; }
  void unlock() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() { pthread_rwlock_rdlock(&lock_); }
  bool try_lock_shared() { return pthread_rwlock_tryrdlock(&lock_) == 0; }
  void unlock_shared() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace athanor
