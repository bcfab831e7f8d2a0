#include "base/exec/left_children.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <utility>

#include "base/exec/process.h"

namespace athanor {

LeftChildren::LeftChildren() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

LeftChildren::~LeftChildren() {
  std::thread watcher;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    watcher = std::move(watcher_);
  }
  (void)::eventfd_write(wake_.get(), 1);
  if (watcher.joinable()) watcher.join();
}

void LeftChildren::Add(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd || !wake_) return;
  const MutexLock lock(mutex_);
  added_.push_back({pid, std::move(pidfd)});
  if (!watcher_.joinable()) watcher_ = std::thread([this] { Watch(); });
  (void)::eventfd_write(wake_.get(), 1);
}

void LeftChildren::Watch() {
  std::vector<Child> children;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (over_) return;
      std::move(added_.begin(), added_.end(), std::back_inserter(children));
      added_.clear();
    }
    std::vector<::pollfd> polled{{wake_.get(), POLLIN, 0}};
    for (const auto& child : children) polled.push_back({child.pidfd.get(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) <= 0) continue;
    eventfd_t woken = 0;
    (void)::eventfd_read(wake_.get(), &woken);
    std::erase_if(children, [](const Child& child) { return ReapIfEnded(child.pid); });
  }
}

}  // namespace athanor
