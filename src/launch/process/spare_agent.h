// An agent that is started before there is an attempt for it. Between submit and start, a job
// mostly waits for programs to start; this removes one of them.
//
// One waits at a time. It is replaced shortly after it was given an attempt, when the script of
// that attempt runs. It ends with this object, even if this process is killed.
#pragma once

#include <string>
#include <thread>

#include "base/exec/left_children.h"
#include "base/exec/mutex.h"
#include "base/io/fd.h"

namespace athanor {

class SpareAgent {
 public:
  // `attempts_dir` and `program` as in ProcessBackend. Agents become `children`, which live longer.
  SpareAgent(std::string program, std::string attempts_dir, LeftChildren& children);
  ~SpareAgent();

  // Any thread. False: none waits, or it has died; then start one in the usual way.
  bool Give(const std::string& attempt_dir);

 private:
  void KeepOne();
  UniqueFd Start();

  const std::string program_;
  const std::string attempts_dir_;
  LeftChildren& children_;
  Mutex mutex_;
  CondVar changed_;
  UniqueFd orders_ GUARDED_BY(mutex_);  // to the one that waits
  bool wanted_ GUARDED_BY(mutex_) = true;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::thread keeper_;
};

}  // namespace athanor
