#include "base/exec/clock.h"

#include <chrono>
#include <ctime>

namespace athanor {
namespace {

int64_t MillisOf(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

WallTime SystemClock::Wall() const { return WallTime{MillisOf(CLOCK_REALTIME)}; }

Millis SystemClock::Monotonic() const { return Millis(MillisOf(CLOCK_BOOTTIME)); }

std::string Rfc3339(WallTime time) {
  // Division toward minus infinity, so that times before 1970 keep a positive fraction.
  int64_t seconds = time.ms / 1000;
  int64_t fraction = time.ms % 1000;
  if (fraction < 0) {
    fraction += 1000;
    seconds -= 1;
  }
  // We do not use gmtime and fmt: a list of ten thousand jobs has thirty thousand times.
  const int64_t days = seconds >= 0 ? seconds / 86'400 : -((86'399 - seconds) / 86'400);
  const auto second = static_cast<unsigned>(seconds - days * 86'400);
  constexpr int64_t kMostDays = 2'932'896;  // 9999-12-31
  if (days < -719'528 || days > kMostDays) return "0000-00-00T00:00:00.000Z";
  const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{days}}};
  std::string text = "0000-00-00T00:00:00.000Z";
  const auto put = [&text](size_t at, size_t digits, unsigned value) {
    for (size_t i = at + digits; i-- > at; value /= 10)
      text[i] = static_cast<char>('0' + value % 10);
  };
  put(0, 4, static_cast<unsigned>(static_cast<int>(date.year())));
  put(5, 2, static_cast<unsigned>(date.month()));
  put(8, 2, static_cast<unsigned>(date.day()));
  put(11, 2, second / 3600);
  put(14, 2, second / 60 % 60);
  put(17, 2, second % 60);
  put(20, 3, static_cast<unsigned>(fraction));
  return text;
}

}  // namespace athanor
