// A Yielder holds back background work so that training does not feel it: full speed,
// up to a rate, on processors nobody uses, and a fiftieth of the machine otherwise; more
// when a piece of work drags on, since a save that is replaced before it is kept was made
// for nothing. A low priority alone does not do: between cgroups and between sessions
// (autogroups) the kernel shares by group, whatever the nice values inside.
//
// Threads: one, the one that works.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace athanor {

class Yielder {
 public:
  // Waits so long, or less; false: give up.
  using Pause = std::function<bool(std::chrono::nanoseconds)>;

  // `proc_stat` is another file in tests.
  explicit Yielder(Pause pause, std::string proc_stat = "/proc/stat");

  // Looks how busy the machine is; called now and then also while there is no work.
  void Sample();
  // A new piece of work.
  void Begin();
  // After work on `bytes`. False: give up.
  bool Spend(uint64_t bytes);
  bool machine_busy() const { return busy_; }

  static constexpr double kShareWhenBusy = 0.02;  // of all processors
  static constexpr double kMostWhenBusy = 0.25;   // of one; the share doubles every two seconds
  static constexpr uint64_t kBytesPerSecond = uint64_t{256} << 20;

  // This thread below all others in its group, for processor and disk. Not the idle
  // classes: behind a script that never rests they would not run at all.
  static void LowerPriority();

  // How long this thread has stood ready and waited for a processor, in all; 0: the kernel
  // does not say.
  static std::chrono::nanoseconds WaitedForProcessor();

 private:
  Pause pause_;
  std::string proc_stat_;
  bool busy_ = false;
  double first_share_ = 0;   // of one processor
  double begun_at_ = 0;      // seconds
  double sampled_at_ = 0;
  double idle_ = 0;          // of all processors, seconds since boot
  double own_ = 0;           // this thread's, at the last sample
  double spent_own_ = 0;     // ... at the last Spend
  double spent_at_ = 0;      // end of the last Spend
};

}  // namespace athanor
