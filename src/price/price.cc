#include "price/price.h"

#include <limits>

#include "base/text/format.h"

namespace athanor {
namespace {

__extension__ typedef __int128 Wide;

// amount * rate / unit, to the nearest.
Wide Share(uint64_t amount, int64_t rate, uint64_t unit) {
  if (rate <= 0) return 0;
  return (static_cast<Wide>(amount) * rate + unit / 2) / unit;
}

}  // namespace

PriceTag PriceOfType(const InstanceType& type, bool spot) {
  PriceTag tag;
  tag.source = type.source;
  tag.micros_per_hour = type.on_demand_micros;
  if (spot && type.spot_micros) {
    tag.micros_per_hour = *type.spot_micros;
    tag.source += ", spot mean";
  }
  return tag;
}

PriceTag PriceOfAmounts(uint32_t cpu_millis, uint64_t memory_bytes, uint32_t gpus,
                        const OwnRates& rates) {
  const Wide sum = Share(cpu_millis, rates.cpu_hour_micros, 1'000) +
                   Share(memory_bytes, rates.gib_hour_micros, 1ull << 30) +
                   Share(gpus, rates.gpu_hour_micros, 1);
  constexpr Wide kMax = std::numeric_limits<int64_t>::max();
  PriceTag tag;
  tag.micros_per_hour = static_cast<int64_t>(sum > kMax ? kMax : sum);
  tag.currency = rates.currency;
  tag.source = "own machine";
  return tag;
}

std::string HumanMoney(int64_t micros, const std::string& currency) {
  const bool negative = micros < 0;
  const uint64_t value =
      negative ? 0 - static_cast<uint64_t>(micros) : static_cast<uint64_t>(micros);
  std::string digits = fmt::format("{:06}", value % 1'000'000);
  while (digits.size() > 2 && digits.back() == '0') digits.pop_back();
  const std::string amount = fmt::format("{}.{}", value / 1'000'000, digits);
  const char* sign = negative ? "-" : "";
  if (currency == "USD") return fmt::format("{}${}", sign, amount);
  return fmt::format("{}{} {}", sign, amount, currency);
}

}  // namespace athanor
