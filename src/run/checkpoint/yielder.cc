#include "run/checkpoint/yielder.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/io/files.h"

namespace athanor {
namespace {

constexpr double kSampleEvery = 0.1;
constexpr double kDoubleEvery = 2;
// Part of a processor that others leave idle: this much means that we are in no one's way.
constexpr double kFree = 0.8;

double Now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// Idle seconds of all processors, waiting for disks included; negative: not known.
double IdleSeconds(const std::string& path) {
  const auto text = ReadFile(path, 1 << 20);
  unsigned long long user = 0, nice = 0, system = 0, idle = 0, wait = 0;
  if (!text || std::sscanf(text->c_str(), "cpu %llu %llu %llu %llu %llu", &user, &nice, &system,
                           &idle, &wait) != 5) {
    return -1;
  }
  return static_cast<double>(idle + wait) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

Yielder::Yielder(Pause pause, std::string proc_stat)
    : pause_(std::move(pause)), proc_stat_(std::move(proc_stat)) {
  const auto processors = static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  first_share_ = std::min(kShareWhenBusy * processors, kMostWhenBusy);
  Sample();
  Begin();
}

Yielder Yielder::OneOf(size_t threads) const {
  Yielder one(pause_, proc_stat_);
  one.threads_ = threads;
  one.busy_ = busy_;
  one.begun_at_ = begun_at_;
  one.sampled_at_ = 0;  // the first sample compares with nothing
  return one;
}

void Yielder::Begin() { begun_at_ = Now(CLOCK_MONOTONIC); }

void Yielder::Sample() {
  const double now = Now(CLOCK_MONOTONIC);
  if (sampled_at_ > 0 && now - sampled_at_ < kSampleEvery) return;
  // What the others that work with us take is not training.
  const double own = Now(threads_ > 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID);
  const double idle = IdleSeconds(proc_stat_);
  if (idle < 0) {
    busy_ = true;
  } else if (sampled_at_ > 0) {
    const double free = (idle - idle_) + std::max(0.0, own - own_);
    busy_ = free < kFree * (now - sampled_at_);
  }
  sampled_at_ = now;
  idle_ = idle;
  own_ = own;
}

bool Yielder::Spend(uint64_t bytes) {
  const double now = Now(CLOCK_MONOTONIC);
  const double own = Now(CLOCK_THREAD_CPUTIME_ID);
  double wait = 0;
  // After a pause between two pieces of work, there is nothing to catch up on.
  if (spent_at_ > 0 && now - spent_at_ < 1) {
    wait = static_cast<double>(bytes) / static_cast<double>(kBytesPerSecond) - (now - spent_at_);
    if (busy_) {
      const double used = std::max(0.0, own - spent_own_);
      const double share =
          std::min(kMostWhenBusy, first_share_ * std::exp2((now - begun_at_) / kDoubleEvery)) /
          static_cast<double>(threads_);
      wait = std::max(wait, used / share - (now - spent_at_));
    }
  }
  const bool go_on =
      pause_(std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(wait, 0.0, 1.0) * 1e9)));
  Sample();
  spent_own_ = Now(CLOCK_THREAD_CPUTIME_ID);
  spent_at_ = Now(CLOCK_MONOTONIC);
  return go_on;
}

void Yielder::LowerPriority() {
  const auto thread = static_cast<id_t>(::syscall(SYS_gettid));
  (void)::setpriority(PRIO_PROCESS, thread, 19);
  constexpr int kWhoProcess = 1;
  constexpr int kBestEffort = 2 << 13;
  constexpr int kLast = 7;
  (void)::syscall(SYS_ioprio_set, kWhoProcess, 0, kBestEffort | kLast);
}

std::chrono::nanoseconds Yielder::WaitedForProcessor() {
  const auto text = ReadFile("/proc/thread-self/schedstat", 256);
  long long ran = 0, waited = 0;
  if (!text || std::sscanf(text->c_str(), "%lld %lld", &ran, &waited) != 2) waited = 0;
  return std::chrono::nanoseconds(waited);
}

}  // namespace athanor
