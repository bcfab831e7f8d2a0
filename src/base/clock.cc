#include "base/clock.h"

#include <ctime>

#include "base/format.h"

namespace athanor {
namespace {

int64_t MillisOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

WallTime SystemClock::Wall() const {
  return WallTime{MillisOf(CLOCK_REALTIME)};
}

Millis SystemClock::Monotonic() const {
  return Millis(MillisOf(CLOCK_BOOTTIME));
}

std::string Rfc3339(WallTime time) {
  // Division toward minus infinity, so that times before 1970 keep a positive fraction.
  int64_t seconds = time.ms / 1000;
  int64_t fraction = time.ms % 1000;
  if (fraction < 0) {
    fraction += 1000;
    seconds -= 1;
  }
  const time_t as_time = static_cast<time_t>(seconds);
  tm parts{};
  if (gmtime_r(&as_time, &parts) == nullptr) return "0000-00-00T00:00:00.000Z";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", int64_t{parts.tm_year} + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     fraction);
}

}  // namespace athanor
