#include "record/jobs/seen_filter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace athanor {
namespace {

TEST(SeenFilter, NeverSaysNoOfWhatItSawAndSeldomYesOfWhatItDidNot) {
  const auto filter = std::make_unique<SeenFilter>();
  constexpr int kTexts = 10'000;
  for (int i = 0; i < kTexts; ++i) filter->Add("seen " + std::to_string(i));
  int wrong = 0;
  for (int i = 0; i < kTexts; ++i) {
    ASSERT_TRUE(filter->Perhaps("seen " + std::to_string(i))) << i;
    wrong += filter->Perhaps("other " + std::to_string(i));
  }
  EXPECT_LT(wrong, kTexts / 200);
}

TEST(SeenFilter, KnowsNothingAtFirst) {
  EXPECT_FALSE(std::make_unique<SeenFilter>()->Perhaps("a"));
}

}  // namespace
}  // namespace athanor
