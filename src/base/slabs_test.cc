#include "base/slabs.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

namespace athanor {
namespace {

using Large = std::array<uint64_t, 250>;  // a little more than 128 of them fit in a slab

uint64_t Seed() {
  const char* given = std::getenv("ATHANOR_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
}

Large Filled(uint64_t with) {
  Large value;
  value.fill(with);
  return value;
}

TEST(Slabs, GoBackToTheSystemWithTheirLastNode) {
  SlabMap<int, Large> map;
  const auto slabs = map.get_allocator().slabs();
  for (int i = 0; i < 1'000; ++i) map.emplace(i, Filled(i));
  const size_t most = slabs->count();
  EXPECT_GE(most, 7u);
  EXPECT_LE(most, 9u);
  for (int i = 0; i < 999; ++i) map.erase(i);
  EXPECT_LE(slabs->count(), 2u);
  EXPECT_EQ(map.at(999), Filled(999));
  map.clear();
  EXPECT_EQ(slabs->count(), 1u) << "for the next one";
  map.emplace(1, Filled(1));
  EXPECT_EQ(slabs->count(), 1u);
}

TEST(Slabs, MapsMoveWithTheirSlabs) {
  SlabMap<int, Large> map;
  map.emplace(1, Filled(1));
  SlabMap<int, Large> other;
  other.emplace(2, Filled(2));
  other = std::move(map);
  EXPECT_EQ(other.at(1), Filled(1));
  EXPECT_EQ(other.size(), 1u);
}

// Planted bugs that turn it red: a full slab is not put back into the list of slabs with room; a
// freed slot is given out twice.
TEST(SlabsHistory, EveryNodeKeepsWhatWasPutThere) {
  const uint64_t seed = Seed();
  SCOPED_TRACE("ATHANOR_SEED=" + std::to_string(seed));
  std::mt19937_64 dice(seed);
  SlabMap<uint64_t, Large> map;
  std::map<uint64_t, uint64_t> model;
  for (int round = 0; round < 20'000; ++round) {
    const bool shrink = (round / 2'000) % 2 == 1;
    if (dice() % 10 < (shrink ? 2u : 8u) || model.empty()) {
      const uint64_t key = dice() % 5'000;
      map[key] = Filled(round);
      model[key] = round;
    } else {
      auto at = model.lower_bound(dice() % 5'000);
      if (at == model.end()) at = model.begin();
      ASSERT_EQ(map.at(at->first), Filled(at->second));
      map.erase(at->first);
      model.erase(at);
    }
  }
  ASSERT_EQ(map.size(), model.size());
  for (const auto& [key, value] : model) ASSERT_EQ(map.at(key), Filled(value));
  const size_t per_slab = (256 << 10) / sizeof(Large);
  EXPECT_LE(map.get_allocator().slabs()->count(), 2 + model.size() * 20 / per_slab);
}

}  // namespace
}  // namespace athanor
