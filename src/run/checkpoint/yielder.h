// A Yielder slows background work down so that training is not affected: full speed, up to a rate,
// on idle processors, and a fiftieth of the machine otherwise; more if a piece of work takes long,
// because a save that is replaced before it is stored is lost. A low priority alone is not enough:
// between cgroups and between sessions (autogroups) the kernel shares CPU time by group, whatever
// the nice values inside.
//
// Threads: one, the one that works. Several that work on one thing have one each (OneOf).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace athanor {

class Yielder {
 public:
  // Waits that long, or less; false: give up.
  using Pause = std::function<bool(std::chrono::nanoseconds)>;

  // `proc_stat` is another file in tests.
  explicit Yielder(Pause pause, std::string proc_stat = "/proc/stat");

  // For one of `threads` that work at once: together they take as much of busy processors as this
  // one would alone.
  Yielder OneOf(size_t threads) const;

  // Measures how busy the machine is; also called from time to time while there is no work.
  void Sample();
  // A new piece of work.
  void Begin();
  // After work on `bytes`. False: give up.
  bool Spend(uint64_t bytes);
  bool machine_busy() const { return busy_; }

  static constexpr double kShareWhenBusy = 0.02;  // of all processors
  static constexpr double kMostWhenBusy = 0.25;   // of one; the share doubles every two seconds
  static constexpr uint64_t kBytesPerSecond = uint64_t{256} << 20;

  // Gives this thread the lowest priority in its group, for processor and disk. Not the idle
  // classes: next to a script that is always busy, it would not run at all.
  static void LowerPriority();

  // How long this thread was ready and waited for a processor, in total; 0: the kernel does not
  // say.
  static std::chrono::nanoseconds WaitedForProcessor();

 private:
  Pause pause_;
  std::string proc_stat_;
  size_t threads_ = 1;
  bool busy_ = false;
  double first_share_ = 0;  // of one processor
  double begun_at_ = 0;     // seconds
  double sampled_at_ = 0;
  double idle_ = 0;       // of all processors, seconds since boot
  double own_ = 0;        // our own, at the last sample
  double spent_own_ = 0;  // ... at the last Spend
  double spent_at_ = 0;   // end of the last Spend
};

}  // namespace athanor
