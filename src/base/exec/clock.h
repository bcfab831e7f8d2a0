// Clocks are arguments, never globals. Wall time is for people; limits, leases and cost use the
// monotonic clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace athanor {

using Millis = std::chrono::milliseconds;
using Seconds = std::chrono::seconds;

// Milliseconds since 1970, UTC.
struct WallTime {
  int64_t ms = 0;
  auto operator<=>(const WallTime&) const = default;
};

class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Wall() const = 0;
  virtual Millis Monotonic() const = 0;  // since an arbitrary start
};

// The kernel's clocks; CLOCK_BOOTTIME for Monotonic, so that sleep counts.
class SystemClock final : public Clock {
 public:
  WallTime Wall() const override;
  Millis Monotonic() const override;
};

// Moves only when a test moves it.
class FakeClock final : public Clock {
 public:
  WallTime Wall() const override { return wall_; }
  Millis Monotonic() const override { return monotonic_; }
  void Advance(Millis by) {
    wall_.ms += by.count();
    monotonic_ += by;
  }
  void JumpWall(Millis by) { wall_.ms += by.count(); }

 private:
  WallTime wall_{1'700'000'000'000};
  Millis monotonic_{1'000};
};

std::string Rfc3339(WallTime time);  // 2026-11-15T20:25:53.120Z

}  // namespace athanor
