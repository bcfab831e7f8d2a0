#include "run/checkpoint/interval.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace athanor {
namespace {

constexpr double kSecond = 1'000;
constexpr double kHour = 3'600'000;

}  // namespace

IntervalAdvice AdviseInterval(int64_t save_ms, int64_t mtbf_ms, std::string source) {
  IntervalAdvice advice;
  advice.save_ms = std::max<int64_t>(save_ms, 0);
  advice.mtbf_ms = std::max<int64_t>(mtbf_ms, 0);
  advice.source = std::move(source);
  if (save_ms <= 0 || mtbf_ms <= 0) return advice;
  const auto cost = static_cast<double>(save_ms);
  const auto between = static_cast<double>(mtbf_ms);
  // Daly: past C = M / 2 the expansion does not hold, and M itself is the answer.
  const double best = cost < between / 2 ? std::sqrt(2 * cost * between) - cost : between;
  const double low = std::max(kSecond, std::min(10 * cost, between / 2));
  const double high = std::max({kHour, 50 * cost, low});
  advice.every_ms = std::llround(std::clamp(best, low, high));
  return advice;
}

double ExpectedCost(const IntervalAdvice& advice) {
  if (advice.every_ms <= 0 || advice.mtbf_ms <= 0) return 0;
  const auto cycle = static_cast<double>(advice.every_ms + advice.save_ms);
  const double saving = static_cast<double>(advice.save_ms) / cycle;
  // A loss comes, on average, in the middle of a cycle.
  const double redoing = cycle / 2 / static_cast<double>(advice.mtbf_ms);
  return std::min(1.0, saving + redoing);
}

}  // namespace athanor
