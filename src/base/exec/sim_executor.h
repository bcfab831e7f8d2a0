// SimExecutor runs tasks in virtual time: it owns a FakeClock and moves it to
// the moment of the next task, so hours of timers pass in microseconds and
// every run with the same posts has the same order (time, then order of posting).
//
// Threads: one. Unlike other executors, Post must come from the thread that runs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/exec/clock.h"
#include "base/exec/executor.h"

namespace athanor {

class SimExecutor final : public Executor {
 public:
  SimExecutor() = default;
  SimExecutor(const SimExecutor&) = delete;
  SimExecutor& operator=(const SimExecutor&) = delete;

  void Post(Task task) override;
  TimerId After(std::chrono::milliseconds delay, Task task) override;
  void Cancel(TimerId timer) override;

  // The next task, if any, with the clock moved to its time.
  bool RunOne();
  // Until nothing is left or `most` tasks have run; returns how many ran.
  size_t RunUntilIdle(size_t most = SIZE_MAX);
  // Runs everything that is due within `span`; the clock is then exactly at its end.
  size_t RunFor(std::chrono::milliseconds span);

  FakeClock& clock() { return clock_; }
  size_t pending() const { return tasks_.size(); }

 private:
  using Key = std::pair<Millis, TimerId>;

  FakeClock clock_;
  std::map<Key, Task> tasks_;
  std::unordered_map<TimerId, Millis> due_;
  TimerId next_id_ = 1;
};

}  // namespace athanor
