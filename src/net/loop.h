// Loop is the server's Executor: one epoll loop, one thread, no locks for what runs on it. It also
// reports when a descriptor is ready and when a signal arrived.
//
// Threads: Post, After, Cancel and Stop are safe from any thread; everything else belongs to the
// thread that calls Run (or any one thread before Run). Tasks must not throw. Tasks that are still
// queued when the Loop is destroyed do not run.
#pragma once

#include <chrono>
#include <memory>

#include "base/exec/executor.h"
#include "base/result.h"

namespace athanor {

// Waits for one descriptor, which it does not own and which is made
// non-blocking. Close the descriptor only after the watch is gone. After its
// destruction no task of it runs, not even one that was already due.
class FdWatch {
 public:
  virtual ~FdWatch() = default;
  // Each runs `task` once; an error or hang-up counts as ready. At most one wait per direction at a
  // time; call it again from within the task to continue.
  virtual void WhenReadable(Executor::Task task) = 0;
  virtual void WhenWritable(Executor::Task task) = 0;
};

class Loop final : public Executor {
 public:
  Loop();
  ~Loop() override;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs tasks until Stop, even when there is nothing to do. May be called again.
  void Run();
  void Stop();
  bool InLoopThread() const;
  // The most CPU time that one task took: all others waited for that long. From any thread.
  std::chrono::microseconds longest_task() const;

  void Post(Task task) override;
  TimerId After(std::chrono::milliseconds delay, Task task) override;
  void Cancel(TimerId timer) override;

  // kInvalid for what epoll cannot wait for (a plain file, a closed descriptor)
  // and for a descriptor that is already watched.
  Result<std::unique_ptr<FdWatch>> Watch(int fd);
  // Runs `task` each time `fd` is readable until the returned watch is destroyed. `task` must read
  // what is there, or it runs again at once. For a pidfd, which stays readable, destroy the watch
  // in the task or use Watch().
  Result<std::unique_ptr<FdWatch>> WatchFd(int fd, Task task);

  // Runs `task` for each arrival of `signal` (several may be merged into one).
  Status OnSignal(int signal, Task task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace athanor
