#include "net/loop.h"

#include <sys/stat.h>

#include <atomic>
#include <unordered_map>
#include <vector>

#include "net/asio.h"

namespace athanor {
namespace {

namespace asio = boost::asio;
using ErrorCondition = boost::system::error_code;

class AsioFdWatch final : public FdWatch {
 public:
  explicit AsioFdWatch(asio::io_context& io) : descriptor_(io) {}
  ~AsioFdWatch() override {
    *alive_ = false;
    if (descriptor_.is_open()) descriptor_.release();
  }

  ErrorCondition Open(int fd) {
    ErrorCondition error;
    descriptor_.assign(fd, error);
    return error;
  }

  void WhenReadable(Executor::Task task) override {
    Wait(asio::posix::stream_descriptor::wait_read, std::move(task));
  }
  void WhenWritable(Executor::Task task) override {
    Wait(asio::posix::stream_descriptor::wait_write, std::move(task));
  }

 private:
  void Wait(asio::posix::stream_descriptor::wait_type type, Executor::Task task) {
    descriptor_.async_wait(type,
                           [alive = alive_, task = std::move(task)](const ErrorCondition& error) {
                             if (*alive && error != asio::error::operation_aborted) task();
                           });
  }

  asio::posix::stream_descriptor descriptor_;
  // Shared with the waits: a completion may be queued when the watch is destroyed.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

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

struct Loop::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::atomic<TimerId> next_timer{1};
  std::unordered_map<TimerId, asio::steady_timer> timers;
  std::vector<std::unique_ptr<asio::signal_set>> signals;

  void AddTimer(TimerId id, std::chrono::steady_clock::time_point when, Task task) {
    auto [place, added] = timers.try_emplace(id, io, when);
    place->second.async_wait([this, id, task = std::move(task)](const ErrorCondition& error) {
      // Cancelled after it came due: the completion is queued without an error.
      if (error || timers.erase(id) == 0) return;
      task();
    });
  }

  void WaitForSignal(asio::signal_set& set, std::shared_ptr<Task> task) {
    set.async_wait([this, &set, task](const ErrorCondition& error, int) {
      if (error) return;
      WaitForSignal(set, task);
      (*task)();
    });
  }
};

Loop::Loop() : impl_(std::make_unique<Impl>()) {}

// Timers and signal sets go before the io_context, whose services they use.
Loop::~Loop() {
  impl_->signals.clear();
  impl_->timers.clear();
}

void Loop::Run() {
  impl_->io.restart();
  impl_->io.run();
}

void Loop::Stop() {
  impl_->io.stop();
}

bool Loop::InLoopThread() const {
  return impl_->io.get_executor().running_in_this_thread();
}

void Loop::Post(Task task) {
  asio::post(impl_->io, std::move(task));
}

Executor::TimerId Loop::After(std::chrono::milliseconds delay, Task task) {
  const TimerId id = impl_->next_timer++;
  const auto when = std::chrono::steady_clock::now() + delay;
  if (InLoopThread()) {
    impl_->AddTimer(id, when, std::move(task));
  } else {
    asio::post(impl_->io, [impl = impl_.get(), id, when, task = std::move(task)]() mutable {
      impl->AddTimer(id, when, std::move(task));
    });
  }
  return id;
}

void Loop::Cancel(TimerId timer) {
  if (InLoopThread()) {
    impl_->timers.erase(timer);
  } else {
    asio::post(impl_->io, [impl = impl_.get(), timer] { impl->timers.erase(timer); });
  }
}

Result<std::unique_ptr<FdWatch>> Loop::Watch(int fd) {
  // Asio takes what epoll refuses and only fails each wait.
  struct stat kind {};
  if (::fstat(fd, &kind) == 0 && (S_ISREG(kind.st_mode) || S_ISDIR(kind.st_mode))) {
    return Fail(ErrorCode::kInvalid, "files and folders are always ready: nothing to wait for");
  }
  auto watch = std::make_unique<AsioFdWatch>(impl_->io);
  if (auto error = watch->Open(fd)) {
    return FailErrno("cannot wait for descriptor " + std::to_string(fd), error.value(),
                     ErrorCode::kInvalid);
  }
  return watch;
}

Result<std::unique_ptr<FdWatch>> Loop::WatchFd(int fd, Task task) {
  ATHANOR_TRY(auto watch, Watch(fd));
  return std::make_unique<RepeatingFdWatch>(std::move(watch), std::move(task));
}

Status Loop::OnSignal(int signal, Task task) {
  auto set = std::make_unique<asio::signal_set>(impl_->io);
  ErrorCondition error;
  set->add(signal, error);
  if (error) {
    return FailErrno("cannot wait for signal " + std::to_string(signal), error.value(),
                     ErrorCode::kInvalid);
  }
  impl_->WaitForSignal(*set, std::make_shared<Task>(std::move(task)));
  impl_->signals.push_back(std::move(set));
  return Ok();
}

}  // namespace athanor
