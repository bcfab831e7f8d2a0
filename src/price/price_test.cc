#include "price/price.h"

#include <gtest/gtest.h>

#include <limits>

namespace athanor {
namespace {

TEST(Price, OfATypeIsTheCataloguesAndSaysSo) {
  const InstanceType type = *Catalogue::Builtin().Find("ml.g4dn.xlarge");
  EXPECT_EQ(PriceOfType(type).micros_per_hour, 526'000);
  EXPECT_EQ(PriceOfType(type).source, "catalogue 2026-08-22");
  EXPECT_EQ(PriceOfType(type, true).micros_per_hour, 356'000);
}

TEST(Price, OfATypeNotSoldAsSpotIsTheFullOne) {
  InstanceType type;
  type.on_demand_micros = 5;
  EXPECT_EQ(PriceOfType(type, true).micros_per_hour, 5);
}

TEST(Price, OfTheOwnMachineIsZeroUnlessConfigured) {
  EXPECT_EQ(PriceOfAmounts(2000, 8ull << 30, 1, OwnRates{}).micros_per_hour, 0);
  EXPECT_EQ(PriceOfAmounts(2000, 8ull << 30, 1, OwnRates{}).source, "own machine");
}

TEST(Price, OfTheOwnMachineIsTheSumOfItsShares) {
  OwnRates rates;
  rates.cpu_hour_micros = 10'000;
  rates.gib_hour_micros = 1'000;
  rates.gpu_hour_micros = 300'000;
  rates.currency = "EUR";
  const PriceTag tag = PriceOfAmounts(1500, 3ull << 29, 2, rates);  // 1.5 CPUs, 1.5 GiB, 2 GPUs
  EXPECT_EQ(tag.micros_per_hour, 15'000 + 1'500 + 600'000);
  EXPECT_EQ(tag.currency, "EUR");
}

TEST(Price, SaturatesInsteadOfOverflowing) {
  OwnRates rates;
  rates.cpu_hour_micros = rates.gib_hour_micros = rates.gpu_hour_micros =
      std::numeric_limits<int64_t>::max();
  EXPECT_EQ(PriceOfAmounts(~0u, ~0ull, ~0u, rates).micros_per_hour,
            std::numeric_limits<int64_t>::max());
}

TEST(Price, MoneyShowsAsManyDecimalsAsItNeeds) {
  EXPECT_EQ(HumanMoney(0), "$0.00");
  EXPECT_EQ(HumanMoney(526'000), "$0.526");
  EXPECT_EQ(HumanMoney(12'400'000), "$12.40");
  EXPECT_EQ(HumanMoney(1), "$0.000001");
  EXPECT_EQ(HumanMoney(-1'500'000, "EUR"), "-1.50 EUR");
  EXPECT_EQ(HumanMoney(std::numeric_limits<int64_t>::min()), "-$9223372036854.775808");
}

}  // namespace
}  // namespace athanor
