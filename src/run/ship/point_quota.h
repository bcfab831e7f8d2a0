// PointQuota is how fast the points of one job may go to the server: a burst, then a number per
// second. The excess waits on the job's own disk, so that a script that logs in a tight loop does
// not take the server's time or disk from other jobs. Pure; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/exec/clock.h"

namespace athanor {

class PointQuota {
 public:
  static constexpr int64_t kBurst = 2'000'000;
  static constexpr int64_t kEachSecond = 50'000;

  // How many may go now.
  size_t Left(Millis now) {
    if (filled_at_.count() < 0) filled_at_ = now;
    const int64_t added = (now - filled_at_).count() * kEachSecond / 1'000;
    if (added > 0) {
      left_ = std::min(kBurst, left_ + added);
      filled_at_ = now;
    }
    return static_cast<size_t>(std::max<int64_t>(left_, 0));
  }
  // They were sent, even if there were more than allowed.
  void Take(size_t points) { left_ -= static_cast<int64_t>(points); }

 private:
  int64_t left_ = kBurst;
  Millis filled_at_{-1};
};

}  // namespace athanor
