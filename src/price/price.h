// What an hour costs, frozen into a PriceTag when a job is submitted. Money is integer millionths:
// no rounding errors add up, and no sum uses floats. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "job/record.h"
#include "price/catalogue.h"

namespace athanor {

// What the owner of a machine charges for it; from the server's settings. All zero: free.
struct OwnRates {
  int64_t cpu_hour_micros = 0;  // one CPU
  int64_t gib_hour_micros = 0;  // one GiB of memory
  int64_t gpu_hour_micros = 0;  // one device
  std::string currency = "USD";
  bool operator==(const OwnRates&) const = default;
};

// A job that names a type pays its price in the catalogue; the spot price if there is one.
PriceTag PriceOfType(const InstanceType& type, bool spot = false);
// A job with amounts runs on the owner's machine: the sum of its shares, 0 unless configured.
// Rounded to the nearest millionth; saturates instead of overflowing.
PriceTag PriceOfAmounts(uint32_t cpu_millis, uint64_t memory_bytes, uint32_t gpus,
                        const OwnRates& rates);

// "$0.526", "$12.40", "3.00 EUR": two to six decimals, as many as are needed.
std::string HumanMoney(int64_t micros, const std::string& currency = "USD");

}  // namespace athanor
