// How far a job is: done of total, and when it will be finished. Marks of the SDK win; without any,
// counters in the log are used ("Epoch 3/10", "340/940 [") and the answer says so. One tracker per
// job; time is an argument. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/exec/clock.h"
#include "watch/scalars/lines.h"

namespace athanor {

struct Progress {
  std::string unit;     // "epoch", "step"; empty for a bare bar
  double done = 0;      // in units; fractions within an epoch
  double total = 0;     // 0: not known
  double fraction = 0;  // 0 to 1; 0 if the total is unknown
  std::optional<Millis> eta;
  bool guessed = false;
};

class ProgressTracker {
 public:
  // From the SDK. `total` 0: unknown. Values that are not finite or negative are ignored.
  void Mark(double done, double total, std::string_view unit, Millis now);
  // Log bytes of rank 0, cut anywhere. Only the end of a large piece is read.
  void Feed(std::string_view bytes, Millis now);
  // None until there was a mark or a counter.
  std::optional<Progress> At(Millis now) const;

 private:
  struct Sample {
    Millis at;
    double done;
  };
  void Line(std::string_view line, Millis now);
  void Add(double done, double total, std::string_view unit, Millis now);

  LineSplitter splitter_;
  std::optional<Progress> last_;
  std::deque<Sample> samples_;  // of the current total, oldest first
  bool marked_ = false;
  // The epoch of the log, for lines that show only the steps within it.
  int64_t epoch_ = -1;
  int64_t epochs_ = 0;
  bool epoch_zero_ = false;
};

}  // namespace athanor
