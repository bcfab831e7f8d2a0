// LeftChildren are processes that were started and that nobody waits for. Those that have ended are
// taken from the process table at once, each by its own pid: commands that somebody does wait for
// (RunCommand) keep their exit status, which ignoring SIGCHLD would take from them.
//
// Threads: safe from any. A thread of its own is started with the first child.
#pragma once

#include <sys/types.h>

#include <thread>
#include <vector>

#include "base/exec/mutex.h"
#include "base/io/fd.h"

namespace athanor {

class LeftChildren {
 public:
  LeftChildren();
  ~LeftChildren();  // those that still run are left to whoever inherits them
  LeftChildren(const LeftChildren&) = delete;
  LeftChildren& operator=(const LeftChildren&) = delete;

  // A child of this process. Without a descriptor to watch it by, it stays in the table when it
  // ends, until this process does.
  void Add(pid_t pid);

 private:
  struct Child {
    pid_t pid = 0;
    UniqueFd pidfd;
  };

  void Watch();

  const UniqueFd wake_;
  Mutex mutex_;
  std::vector<Child> added_ GUARDED_BY(mutex_);  // not watched yet
  bool over_ GUARDED_BY(mutex_) = false;
  std::thread watcher_ GUARDED_BY(mutex_);
};

}  // namespace athanor
