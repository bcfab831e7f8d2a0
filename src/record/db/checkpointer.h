// Checkpointer takes the write-ahead log into the database file on a thread of its own, so
// that no commit waits for the disk twice. It begins with the first Ask.
//
// Threads: Ask from any. What fails is tried again at the next Ask.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace athanor {

class Checkpointer {
 public:
  explicit Checkpointer(std::string path) : path_(std::move(path)) {}
  ~Checkpointer();  // waits for the one under way
  void Ask();       // at once; asking again before it begins changes nothing

 private:
  void Work();

  const std::string path_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool asked_ = false;     // under mutex_
  bool stopping_ = false;  // under mutex_
  std::thread thread_;     // under mutex_ until it runs
};

}  // namespace athanor
