// FolderWatch notices that a working folder is gone (removed, or unmounted) and makes sure that its
// user does not outlive it for long.
//
// Threads: both callbacks come from its own thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/exec/clock.h"
#include "base/exec/mutex.h"

namespace athanor {

class FolderWatch {
 public:
  struct Options {
    std::string dir;
    std::function<void()> gone;  // once
    std::function<void()> late;  // once, if it is still not destroyed `patience` after that
    Millis look_every{1'000};
    Millis patience{10'000};
  };
  explicit FolderWatch(Options options);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  using Identity = std::pair<dev_t, ino_t>;
  void Loop();
  bool Ended(Millis wait);

  const Options options_;
  std::optional<Identity> first_;  // of the folder when it began
  Mutex mutex_;
  CondVar wake_;
  bool ended_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace athanor
