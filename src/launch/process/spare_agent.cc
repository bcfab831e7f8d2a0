#include "launch/process/spare_agent.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <chrono>

#include "base/exec/mutex.h"
#include "base/exec/process.h"
#include "base/io/files.h"
#include "job/ids.h"

namespace athanor {
namespace {

// By then, the script of the previous attempt runs, or does something that takes long.
constexpr std::chrono::milliseconds kPause(40);

}  // namespace

SpareAgent::SpareAgent(std::string program, std::string attempts_dir, LeftChildren& children)
    : program_(std::move(program)), attempts_dir_(std::move(attempts_dir)), children_(children) {
  keeper_ = std::thread([this] { KeepOne(); });
}

SpareAgent::~SpareAgent() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  keeper_.join();
}

bool SpareAgent::Give(const std::string& attempt_dir) {
  UniqueFd orders;
  {
    const MutexLock lock(mutex_);
    orders = std::move(orders_);
    wanted_ = true;
  }
  changed_.notify_one();
  return orders && ::send(orders.get(), attempt_dir.data(), attempt_dir.size(), MSG_NOSIGNAL) ==
                       static_cast<ssize_t>(attempt_dir.size());
}

void SpareAgent::KeepOne() {
  MutexLock lock(mutex_);
  bool first = true;
  for (;;) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return ended_ || wanted_; });
    // The first at once: it also notices when its server is killed.
    const auto pause = first ? std::chrono::milliseconds(0) : kPause;
    first = false;
    if (changed_.wait_for(lock, pause, [this]() REQUIRES(mutex_) { return ended_; })) return;
    // If none can be started, the next attempt tries again.
    wanted_ = false;
    lock.unlock();
    UniqueFd orders = Start();
    lock.lock();
    orders_ = std::move(orders);
  }
}

UniqueFd SpareAgent::Start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return UniqueFd();
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  DetachedOptions options;
  options.pass_fds = {theirs.get()};
  // Overwritten with the attempt's folder, which has the same length, so that `ps` shows which is
  // which.
  const std::string later(AttemptId().ToString().size(), '-');
  const auto pid = SpawnDetached(
      {program_, "agent", "--dir", JoinPath(attempts_dir_, later), "--wait"}, null.get(), options);
  if (!pid) return UniqueFd();
  children_.Add(*pid);
  return ours;
}

}  // namespace athanor
