// What every part of the simulation shares: virtual time, seeded randomness, and the trace. All of
// it runs on one thread, so a seed gives the same history each time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/pool.h"
#include "base/exec/sim_executor.h"

namespace athanor::sim {

// SplitMix64: the same numbers on any machine, whatever the standard library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t Bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return bound == 0 ? 0 : Bits() % bound; }
  bool Percent(uint64_t chance) { return Below(100) < chance; }
  Millis Between(int64_t low, int64_t high) {
    return Millis(low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1))));
  }

 private:
  uint64_t state_;
};

struct World {
  explicit World(uint64_t seed, bool keep_trace) : dice(seed), tracing(keep_trace) {}

  Millis now() { return executor.clock().Monotonic(); }
  // The first broken guarantee counts; the run ends with it.
  void Break(std::string what) {
    if (tracing) Note("BROKEN: " + what);
    if (broken.empty()) broken = std::move(what);
  }
  void Note(const std::string& text) {
    if (tracing) trace.push_back(std::to_string(now().count()) + " " + text);
  }
  // How long a message takes: mostly a short time, sometimes long enough to be overtaken.
  Millis Delay() {
    if (faults && dice.Percent(3)) return dice.Between(1'000, 25'000);
    return dice.Between(1, 40);
  }
  bool Loses() { return faults && dice.Percent(4); }

  SimExecutor executor;
  Dice dice;
  bool faults = true;
  bool tracing;
  std::vector<std::string> trace;
  std::string broken;
};

// The executor of one life of the server: what it had scheduled is dropped with it.
class LifeExecutor final : public Executor {
 public:
  explicit LifeExecutor(SimExecutor& real) : real_(real) {}
  ~LifeExecutor() override { *alive_ = false; }
  void Post(Task task) override { real_.Post(Guarded(std::move(task))); }
  TimerId After(Millis delay, Task task) override {
    return real_.After(delay, Guarded(std::move(task)));
  }
  void Cancel(TimerId timer) override { real_.Cancel(timer); }

 private:
  Task Guarded(Task task) {
    return [alive = alive_, task = std::move(task)] {
      if (*alive) task();
    };
  }
  SimExecutor& real_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // shared with tasks that outlive us
};

// A pool in virtual time: tasks start in order, each on the thread that is free first, and are done
// after a seeded delay.
class VirtualPool final : public Pool {
 public:
  VirtualPool(Executor& executor, World& world, Millis longest, size_t threads = 1)
      : executor_(executor), world_(world), longest_(longest), free_at_(threads) {}
  [[nodiscard]] bool Submit(Task task) override {
    if (stopped_) return false;
    auto& free_at = *std::min_element(free_at_.begin(), free_at_.end());
    free_at = std::max(free_at, world_.now()) + world_.dice.Between(0, longest_.count());
    const auto number = next_++;
    queue_.emplace(number, std::move(task));
    executor_.After(free_at - world_.now(), [this, number] { Run(number); });
    return true;
  }
  void Stop() override {
    stopped_ = true;
    while (!queue_.empty()) Run(queue_.begin()->first);
  }

 private:
  void Run(uint64_t number) {
    auto task = queue_.extract(number);
    if (!task.empty()) task.mapped()();
  }
  Executor& executor_;
  World& world_;
  const Millis longest_;
  std::vector<Millis> free_at_;  // by thread
  std::map<uint64_t, Task> queue_;
  uint64_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace athanor::sim
