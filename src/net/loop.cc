#include "net/loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <deque>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/exec/mutex.h"
#include "base/exec/serving_thread.h"
#include "base/io/fd.h"

namespace athanor {
namespace {

using Steady = std::chrono::steady_clock;

constexpr uint64_t kWake = 0;                   // in place of a watch's number
constexpr int kMostEvents = 64;                 // taken at once
constexpr uint32_t kEnd = EPOLLERR | EPOLLHUP;  // reported even if it was not asked for

// Where a signal is reported: an eventfd of the loop that asked for it last.
std::array<std::atomic<int>, NSIG> g_told_at{};

void OnSignalCame(int signal) {
  const int error = errno;
  const uint64_t one = 1;
  // It fails only if the counter is full, and then the loop has been told already.
  [[maybe_unused]] const ssize_t wrote = ::write(g_told_at[static_cast<size_t>(signal)], &one, 8);
  errno = error;
}

}  // namespace

struct Loop::Impl {
  class Watch;
  struct SignalWatch {
    int signal;
    UniqueFd fd;
    std::unique_ptr<FdWatch> watch;
  };

  Impl() : poll(::epoll_create1(EPOLL_CLOEXEC)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;  // so that it does not have to be read
    event.data.u64 = kWake;
    ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, wake.get(), &event);
  }

  void Wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = ::write(wake.get(), &one, sizeof one);
  }
  // The time of a task is measured with the thread's own CPU clock, which stops while the thread
  // sleeps and does not depend on how busy the machine is.
  static int64_t CpuMicros() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
  }
  void Done() {
    const int64_t now = CpuMicros();
    if (now - last_done > longest) longest = now - last_done;
    last_done = now;
  }
  void RunPosted();
  void RunTimers();
  void Wait();

  void AddTimer(TimerId id, Steady::time_point when, Task task) {
    due.emplace(id, when);
    timers.emplace(std::pair(when, id), std::move(task));
  }
  void DropTimer(TimerId id) {
    const auto at = due.find(id);
    if (at == due.end()) return;
    timers.erase({at->second, id});
    due.erase(at);
  }

  const UniqueFd poll;
  const UniqueFd wake;
  std::atomic<bool> stopped{false};
  std::atomic<std::thread::id> thread{};  // that runs it
  std::atomic<TimerId> next_timer{1};
  std::atomic<int64_t> longest{0};  // of a task, in microseconds
  int64_t last_done = 0;            // the loop's thread only

  Mutex mutex;
  std::deque<Task> posted GUARDED_BY(mutex);
  bool asleep GUARDED_BY(mutex) = false;  // it waits, and was not woken yet

  // The loop's thread only.
  std::map<std::pair<Steady::time_point, TimerId>, Task> timers;
  std::unordered_map<TimerId, Steady::time_point> due;  // when each of `timers` is
  std::unordered_map<uint64_t, Watch*> watches;
  uint64_t next_watch = kWake + 1;
  std::vector<SignalWatch> signals;
};

// A registration in the kernel stays: a connection that is read, answered and waited for again
// needs no further call. An event that nothing waits for is removed from it.
class Loop::Impl::Watch final : public FdWatch {
 public:
  Watch(Impl& loop, int fd) : loop_(loop), fd_(fd), number_(loop.next_watch++) {}
  ~Watch() override {
    if (loop_.watches.erase(number_) > 0 && known_) Ask(EPOLL_CTL_DEL, 0);
  }

  // 0, or an errno.
  int Open() {
    if (Ask(EPOLL_CTL_ADD, EPOLLIN) != 0) return errno;
    loop_.watches.emplace(number_, this);
    const int flags = ::fcntl(fd_, F_GETFL);
    if ((flags & O_NONBLOCK) == 0) ::fcntl(fd_, F_SETFL, flags | O_NONBLOCK);
    return 0;
  }

  void WhenReadable(Task task) override {
    on_read_ = std::move(task);
    Need(EPOLLIN);
  }
  void WhenWritable(Task task) override {
    on_write_ = std::move(task);
    Need(EPOLLOUT);
  }

  // May destroy the watch.
  void Ready(uint32_t events) {
    const bool read = (events & (EPOLLIN | kEnd)) != 0 && on_read_;
    const bool write = (events & (EPOLLOUT | kEnd)) != 0 && on_write_;
    if (!read && !write) return Unwanted(events);
    // A socket is nearly always writable, so this is registered again each time.
    if (write) Ask(EPOLL_CTL_MOD, asked_ & ~uint32_t{EPOLLOUT});
    const Task on_write = write ? std::exchange(on_write_, nullptr) : nullptr;
    if (read) {
      Impl& loop = loop_;
      const uint64_t number = number_;
      std::exchange(on_read_, nullptr)();
      if (!loop.watches.contains(number)) return;
    }
    if (on_write) on_write();
  }

 private:
  void Need(uint32_t event) {
    if ((asked_ & event) != 0) return;
    Ask(known_ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, asked_ | event);
  }
  void Unwanted(uint32_t events) {
    if ((events & kEnd) != 0) {
      Ask(EPOLL_CTL_DEL, 0);  // reported for as long as the descriptor is registered
    } else {
      Ask(EPOLL_CTL_MOD, asked_ & ~events);
    }
  }
  int Ask(int how, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number_;
    asked_ = events;
    known_ = how != EPOLL_CTL_DEL;
    return ::epoll_ctl(loop_.poll.get(), how, fd_, &event);
  }

  Impl& loop_;
  const int fd_;
  const uint64_t number_;
  uint32_t asked_ = 0;
  bool known_ = false;  // to epoll
  Task on_read_;
  Task on_write_;
};

namespace {

class RepeatingFdWatch final : public FdWatch {
 public:
  RepeatingFdWatch(std::unique_ptr<FdWatch> watch, Executor::Task task)
      : watch_(std::move(watch)), task_(std::make_shared<Executor::Task>(std::move(task))) {
    Arm();
  }
  ~RepeatingFdWatch() override { *alive_ = false; }
  void WhenReadable(Executor::Task task) override {
    task_ = std::make_shared<Executor::Task>(std::move(task));
  }
  void WhenWritable(Executor::Task task) override { watch_->WhenWritable(std::move(task)); }

 private:
  void Arm() {
    watch_->WhenReadable([this, alive = alive_] {
      const auto task = task_;  // shared: the task may destroy or replace itself while it runs
      (*task)();
      if (*alive) Arm();
    });
  }

  std::unique_ptr<FdWatch> watch_;
  std::shared_ptr<Executor::Task> task_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

// What is posted meanwhile runs after the timers and the descriptors.
void Loop::Impl::RunPosted() {
  size_t count = SIZE_MAX;
  for (size_t done = 0; !stopped; ++done) {
    Task task;
    {
      const MutexLock lock(mutex);
      if (done == 0) count = posted.size();
      if (done == count) return;
      task = std::move(posted.front());
      posted.pop_front();
    }
    task();
    task = nullptr;  // what it held is destroyed now, and counts
    Done();
  }
}

void Loop::Impl::RunTimers() {
  if (timers.empty()) return;
  const auto now = Steady::now();
  while (!stopped && !timers.empty() && timers.begin()->first.first <= now) {
    auto next = timers.extract(timers.begin());
    due.erase(next.key().second);
    next.mapped()();
    Done();
  }
}

void Loop::Impl::Wait() {
  int pause = -1;
  if (!timers.empty()) {
    const auto left = timers.begin()->first.first - Steady::now();
    const auto whole = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pause = static_cast<int>(std::clamp<int64_t>(whole, 0, 60'000));
  }
  {
    const MutexLock lock(mutex);
    if (!posted.empty() || stopped) pause = 0;
    asleep = pause != 0;
  }
  std::array<epoll_event, kMostEvents> events;
  const int count = ::epoll_wait(poll.get(), events.data(), kMostEvents, pause);
  if (pause != 0) {
    const MutexLock lock(mutex);
    asleep = false;
  }
  for (int i = 0; i < count && !stopped; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    const uint64_t number = event.data.u64;  // a copy: the kernel's struct is packed
    // By number: an earlier task may have destroyed it.
    const auto at = watches.find(number);
    if (at == watches.end()) continue;
    at->second->Ready(event.events);
    Done();
  }
}

Loop::Loop() : impl_(std::make_unique<Impl>()) {}

Loop::~Loop() {
  for (const auto& each : impl_->signals) {
    int mine = each.fd.get();
    if (!g_told_at[static_cast<size_t>(each.signal)].compare_exchange_strong(mine, -1)) continue;
    ::signal(each.signal, SIG_DFL);
  }
  impl_->signals.clear();  // their watches know the rest
  // What a task held may post when it is destroyed.
  for (bool some = true; some;) {
    const auto timers = std::exchange(impl_->timers, {});
    MutexLock lock(impl_->mutex);
    const auto posted = std::exchange(impl_->posted, {});
    lock.unlock();
    some = !timers.empty() || !posted.empty();
  }
}

void Loop::Run() {
  impl_->stopped = false;
  impl_->thread = std::this_thread::get_id();
  MarkServingThread(true);
  impl_->last_done = Impl::CpuMicros();
  while (!impl_->stopped) {
    impl_->RunPosted();
    impl_->RunTimers();
    if (!impl_->stopped) impl_->Wait();
  }
  impl_->thread = std::thread::id();
  MarkServingThread(false);
}

void Loop::Stop() {
  impl_->stopped = true;
  impl_->Wake();
}

bool Loop::InLoopThread() const {
  return impl_->thread.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

std::chrono::microseconds Loop::longest_task() const {
  return std::chrono::microseconds(impl_->longest.load());
}

void Loop::Post(Task task) {
  bool sleeps = false;
  {
    const MutexLock lock(impl_->mutex);
    impl_->posted.push_back(std::move(task));
    sleeps = std::exchange(impl_->asleep, false);
  }
  if (sleeps) impl_->Wake();
}

Executor::TimerId Loop::After(std::chrono::milliseconds delay, Task task) {
  const TimerId id = impl_->next_timer++;
  const auto when = Steady::now() + delay;
  if (InLoopThread()) {
    impl_->AddTimer(id, when, std::move(task));
  } else {
    Post([impl = impl_.get(), id, when, task = std::move(task)]() mutable {
      impl->AddTimer(id, when, std::move(task));
    });
  }
  return id;
}

void Loop::Cancel(TimerId timer) {
  if (InLoopThread()) {
    impl_->DropTimer(timer);
  } else {
    Post([impl = impl_.get(), timer] { impl->DropTimer(timer); });
  }
}

Result<std::unique_ptr<FdWatch>> Loop::Watch(int fd) {
  auto watch = std::make_unique<Impl::Watch>(*impl_, fd);
  const int error = watch->Open();
  if (error == EPERM) {
    return Fail(ErrorCode::kInvalid, "files and folders are always ready: nothing to wait for");
  }
  if (error != 0) {
    return FailErrno("cannot wait for descriptor " + std::to_string(fd), error,
                     ErrorCode::kInvalid);
  }
  return watch;
}

Result<std::unique_ptr<FdWatch>> Loop::WatchFd(int fd, Task task) {
  ATHANOR_TRY(auto watch, Watch(fd));
  return std::make_unique<RepeatingFdWatch>(std::move(watch), std::move(task));
}

Status Loop::OnSignal(int signal, Task task) {
  const auto fail = [signal](int error) {
    return FailErrno("cannot wait for signal " + std::to_string(signal), error,
                     ErrorCode::kInvalid);
  };
  if (signal <= 0 || signal >= NSIG) return fail(EINVAL);
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return fail(errno);
  ATHANOR_TRY(auto watch, WatchFd(fd.get(), [fd = fd.get(), task = std::move(task)] {
                uint64_t count = 0;
                if (::read(fd, &count, sizeof count) > 0) task();
              }));
  g_told_at[static_cast<size_t>(signal)] = fd.get();
  struct sigaction action {};
  action.sa_handler = OnSignalCame;
  action.sa_flags = SA_RESTART;
  if (::sigaction(signal, &action, nullptr) != 0) {
    g_told_at[static_cast<size_t>(signal)] = -1;
    return fail(errno);
  }
  impl_->signals.push_back({signal, std::move(fd), std::move(watch)});
  return Ok();
}

}  // namespace athanor
