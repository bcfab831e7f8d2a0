// Distinguishes a script that hangs from one that works: no output, no metric and (almost) no CPU
// for longer than allowed. Pure; called about once per second with counters; opens nothing and acts
// on nothing. Not thread-safe.
//
// How long it may be quiet:
//   limits.hang_after, when set: from the first sample on, also before any step;
//   else hang_steps (50 when not set) times the median time of a step, once
//   kMinSteps steps were seen; but at least kLeast, and at least kReports times the
//   usual time between two samples with a new step.
// kLeast is five minutes because jobs with steps of milliseconds can be idle for minutes for good
// reasons: an evaluation on another machine, a checkpoint going to a slow disk, a file system that
// fails over. kReports is for scripts that report a thousand steps at once. Never if hang_action is
// "off".
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/exec/clock.h"
#include "job/spec.h"

namespace athanor {

// Counters since the start, over all ranks of this host.
struct HangSample {
  Millis now{0};  // monotonic
  uint64_t log_bytes = 0;
  uint64_t points = 0;
  uint64_t cpu_ns = 0;          // may fall when a process ends; only growth counts
  std::optional<int64_t> step;  // the newest any metric or progress mark had
};

struct Hang {
  Millis quiet{0};                    // since the last output or metric
  Millis limit{0};                    // how long it may be
  std::optional<Millis> median_step;  // if the limit was computed from steps
  std::string limit_source;           // "limits.hang_after", "50 steps of 12.0 s"
  double cpu_percent = 0;             // of one core, over the time of the limit

  // "no output, no metric and 0.0 % CPU for 5:02 (allowed: 5:00, limits.hang_after)"
  std::string Text() const;
};

class HangWatch {
 public:
  static constexpr uint32_t kDefaultSteps = 50;
  static constexpr uint32_t kMinSteps = 5;
  static constexpr Millis kLeast = std::chrono::minutes(5);
  static constexpr int kReports = 3;
  static constexpr double kBusyPercent = 1.0;  // of one core: as much CPU is work
  // A longer time between two samples was not watched (the machine slept, or we did) and counts
  // only as this much.
  static constexpr Millis kMaxGap = Seconds(10);

  explicit HangWatch(const LimitSpec& limits);

  // Reports a hang once; again only after there was output, a metric or CPU.
  std::optional<Hang> Sample(const HangSample& sample);

  // What is allowed now; none if it is not known yet, or the watch is off.
  std::optional<Millis> limit() const;

 private:
  struct Cpu {
    Millis at;
    uint64_t used;
  };

  void SeeStep(std::optional<int64_t> step);
  void KeepCpu(Millis limit);
  double CpuPercent() const;  // over the window
  std::string LimitSource() const;

  const Millis after_;
  const uint32_t steps_;
  const bool off_;

  bool started_ = false;
  HangSample last_;
  Millis watched_{0};      // time that counts
  Millis last_sign_{0};    // of output or metrics, in watched time
  uint64_t cpu_used_ = 0;  // growth only
  std::deque<Cpu> cpu_;    // oldest first; the first is at or before the window's begin
  std::optional<int64_t> step_;
  Millis step_at_{0};
  uint64_t steps_seen_ = 0;
  std::deque<double> step_ms_;    // of the last reports, a step
  std::deque<double> report_ms_;  // ... and the report itself
  bool told_ = false;
};

}  // namespace athanor
