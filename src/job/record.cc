#include "job/record.h"

namespace athanor {

int64_t CostMicros(const JobRecord& record) {
  int64_t held_ms = 0;
  for (const auto& attempt : record.attempts) held_ms += attempt.held_ms;
  // Whole seconds, rounded up: the granularity people are billed in elsewhere.
  int64_t seconds = (held_ms + 999) / 1000;
  return record.price.micros_per_hour * seconds / 3600;
}

}  // namespace athanor
