#include "price/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace athanor {
namespace {

constexpr uint64_t kGib = 1ull << 30;

Inventory Machine(uint32_t cpus, uint64_t gib, uint32_t gpus = 0) {
  Inventory inventory;
  inventory.cpu_millis = cpus * 1000;
  inventory.memory_bytes = gib * kGib;
  inventory.gpus = gpus;
  return inventory;
}

TEST(Catalogue, HasEveryRowOfItsFileOnceAndByName) {
  const auto& all = Catalogue::Builtin().All();
  EXPECT_EQ(all.size(), 142u + 1u);  // 142 sold in us-east-1, and the retired ml.p2.xlarge
  std::set<std::string> names;
  for (const InstanceType& type : all) {
    EXPECT_TRUE(names.insert(type.name).second) << type.name;
    EXPECT_EQ(type.name.substr(0, 3), "ml.");
    EXPECT_GE(type.cpu_millis, 2000u) << type.name;
    EXPECT_GE(type.memory_bytes, 4 * kGib) << type.name;
    EXPECT_GT(type.on_demand_micros, 0) << type.name;
    ASSERT_TRUE(type.spot_micros) << type.name;
    EXPECT_GT(*type.spot_micros, 0) << type.name;
    EXPECT_EQ(type.gpus == 0, type.gpu_model.empty()) << type.name;
    EXPECT_EQ(type.source, "catalogue 2026-08-22");
  }
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(Catalogue, KnowsAmountsAndPricesExactly) {
  const auto type = Catalogue::Builtin().Find("ml.p4d.24xlarge");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->cpu_millis, 96'000u);
  EXPECT_EQ(type->memory_bytes, 1152 * kGib);
  EXPECT_EQ(type->gpus, 8u);
  EXPECT_EQ(type->gpu_model, "A100");
  EXPECT_EQ(type->gpu_memory_bytes, 40 * kGib);
  EXPECT_EQ(type->on_demand_micros, 21'957'642);
  EXPECT_EQ(type->spot_micros, 16'939'400);
  // 7.5 GiB and 22.4 GiB are not whole.
  EXPECT_EQ(Catalogue::Builtin().Find("ml.c4.xlarge")->memory_bytes, 15 * kGib / 2);
  EXPECT_EQ(Catalogue::Builtin().Find("ml.g5.xlarge")->gpu_memory_bytes, 24'051'816'858u);
}

TEST(Catalogue, SuggestsTheNearestNames) {
  const auto typo = Catalogue::Builtin().Find("ml.g4dn.xlage");
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().code, ErrorCode::kNotFound);
  EXPECT_NE(typo.error().hint.find("ml.g4dn.xlarge"), std::string::npos) << typo.error().hint;
  EXPECT_NE(typo.error().hint.find("ath types"), std::string::npos);

  const auto upper = Catalogue::Builtin().Find("ML.M5.LARGE");
  ASSERT_FALSE(upper);
  EXPECT_NE(upper.error().hint.find("ml.m5.large"), std::string::npos) << upper.error().hint;
}

TEST(Catalogue, AnswersForNamesThatAreNotNames) {
  for (const std::string& name : {std::string(), std::string(1 << 16, 'x'), std::string("a\0b", 3),
                                  std::string("\x1b[2J"), std::string("\xff\xfe")}) {
    const auto found = Catalogue::Builtin().Find(name);
    ASSERT_FALSE(found);
    EXPECT_LT(found.error().what.size(), 500u);
    EXPECT_EQ(found.error().what.find('\x1b'), std::string::npos);
  }
}

TEST(Catalogue, NamesTheLargestTypeThatAMachineCanGive) {
  const Catalogue& builtin = Catalogue::Builtin();
  // Of the 2-CPU types the r5 family has the most memory (16 GiB); plain r5 is the cheapest.
  EXPECT_EQ(builtin.LargestFitting(Machine(2, 24))->name, "ml.r5.large");
  EXPECT_EQ(builtin.LargestFitting(Machine(2, 8))->name, "ml.t3.large");
  // A GPU counts for more than CPUs.
  EXPECT_EQ(builtin.LargestFitting(Machine(64, 256, 1))->gpus, 1u);
  EXPECT_FALSE(builtin.LargestFitting(Machine(1, 24)));
  EXPECT_FALSE(builtin.LargestFitting(Machine(2, 3)));
}

TEST(Catalogue, FitsComparesEveryAmount) {
  const InstanceType type = *Catalogue::Builtin().Find("ml.g4dn.xlarge");  // 4 CPUs, 16 GiB, 1 GPU
  EXPECT_TRUE(Fits(type, Machine(4, 16, 1)));
  EXPECT_FALSE(Fits(type, Machine(3, 16, 1)));
  EXPECT_FALSE(Fits(type, Machine(4, 15, 1)));
  EXPECT_FALSE(Fits(type, Machine(4, 16, 0)));
}

TEST(Catalogue, LaysTheUsersFileOverTheBuiltInOne) {
  const auto merged = Catalogue::WithOverrides(
      "name,cpus,memory_gib,gpu,gpu_count,gpu_mem_gib,price_od,price_spot_mean\n"
      "ml.m5.large,2,8,,,,0.05,\n"
      "lab.big,16,64,RTX 4090,2,24,0,\n",
      "types.csv");
  ASSERT_TRUE(merged) << merged.error().what;
  EXPECT_EQ(merged->All().size(), 144u);
  EXPECT_EQ(merged->Find("ml.m5.large")->on_demand_micros, 50'000);
  EXPECT_FALSE(merged->Find("ml.m5.large")->spot_micros);
  EXPECT_EQ(merged->Find("ml.m5.large")->source, "types.csv");
  EXPECT_EQ(merged->Find("ml.m5.xlarge")->source, "catalogue 2026-08-22");
  EXPECT_EQ(merged->LargestFitting(Machine(16, 64, 2))->name, "lab.big");
}

}  // namespace
}  // namespace athanor
