#include "job/record.h"

#include <map>

namespace athanor {

std::string HostNameOf(uint32_t host) { return "algo-" + std::to_string(host + 1); }

int64_t CostMicros(const JobRecord& record) {
  std::map<int64_t, int64_t> held_ms;  // by price
  for (const auto& attempt : record.attempts) {
    held_ms[attempt.micros_per_hour < 0 ? record.price.micros_per_hour : attempt.micros_per_hour] +=
        attempt.held_ms;
  }
  int64_t cost = 0;
  for (const auto& [price, held] : held_ms) {
    // Whole seconds, rounded up: the granularity people are billed in elsewhere.
    cost += price * ((held + 999) / 1000) / 3600;
  }
  return cost;
}

}  // namespace athanor
