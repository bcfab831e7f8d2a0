#include "record/jobs/loss_store.h"

#include <gtest/gtest.h>

#include "record/testing.h"

namespace athanor {
namespace {

TEST(LossStore, AddsUpPerTypeAndMarket) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  ASSERT_NE(database, nullptr);
  LossStore losses(*database);
  ASSERT_TRUE(losses.Add("ml.m5.large", true, 60'000, true).ok());
  ASSERT_TRUE(losses.Add("ml.m5.large", true, 30'000, false).ok());
  ASSERT_TRUE(losses.Add("ml.m5.large", false, 5, false).ok());
  ASSERT_TRUE(losses.Add("local", true, -7, true).ok());
  EXPECT_EQ(losses.Of("ml.m5.large", true), (TypeLosses{"ml.m5.large", true, 90'000, 1}));
  EXPECT_EQ(losses.Of("ml.m5.large", false), (TypeLosses{"ml.m5.large", false, 5, 0}));
  EXPECT_EQ(losses.Of("never seen", false), (TypeLosses{"never seen", false, 0, 0}));
  const auto all = losses.All();
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, (std::vector<TypeLosses>{{"local", true, 0, 1},
                                           {"ml.m5.large", false, 5, 0},
                                           {"ml.m5.large", true, 90'000, 1}}));
}

TEST(LossStore, RemembersAfterAReopen) {
  const ScratchDir dir;
  {
    auto database = OpenStore(dir / "a.db");
    ASSERT_NE(database, nullptr);
    ASSERT_TRUE(LossStore(*database).Add("local", true, 10, true).ok());
  }
  auto database = OpenStore(dir / "a.db");
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(LossStore(*database).Of("local", true), (TypeLosses{"local", true, 10, 1}));
}

}  // namespace
}  // namespace athanor
