#include "job/friendly_name.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace athanor {
namespace {

TEST(FriendlyName, AreTwoWordsAndTheSameForTheSameId) {
  auto id = NewUlid();
  EXPECT_EQ(FriendlyName(id), FriendlyName(id));
  EXPECT_EQ(Split(FriendlyName(id), '-').size(), 2u);
}

}  // namespace
}  // namespace athanor
