// Planted bug that turns these red: numbering the points of joined calls as if they were one.
#include "link/kept_call.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(KeptPlace, IsReadAsItWasWritten) {
  for (const KeptPlace& place : {KeptPlace{0x2f00ba12, 7, {}}, KeptPlace{0x2f00ba12, 7, {1}},
                                 KeptPlace{0x20000000, (1ull << 53) - 1, {1, 2, 22, 1'000}}}) {
    EXPECT_EQ(ParsePlace(FormatPlace(place)), place) << FormatPlace(place);
  }
  EXPECT_EQ(FormatPlace({0x2f00ba12, 7, {1, 2, 22}}), "2f00ba12:7:1,1,20");
}

TEST(KeptPlace, IsNotReadWhereItIsNotOne) {
  for (const char* text :
       {"", "2f00ba12", "2f00ba12:", "2f00ba12:x", "2f00ba12:7x", "2f00ba12:7:", "2f00ba12:7:0",
        "2f00ba12:7:1,", "2f00ba12:7:1,,1", "2f00ba12:7:1001", "2f00ba12:7:1000,1", "2f00ba12:7:-1",
        "2f00ba12:7:1:1", "2f00ba12:9007199254740992", "7:7", "ff00ba12:7"}) {
    EXPECT_FALSE(ParsePlace(text)) << text;
  }
}

TEST(KeptPlace, APointHasTheSameNumberWhetherItsCallIsJoinedOrNot) {
  const uint32_t counts[] = {1, 1, 20, 1, 977};
  KeptPlace joined{0x20000001, 40, {}};
  uint32_t sum = 0;
  for (const uint32_t count : counts) joined.ends.push_back(sum += count);
  size_t index = 0;
  uint64_t last = 0;
  for (uint64_t call = 0; call < std::size(counts); ++call) {
    for (size_t i = 0; i < counts[call]; ++i, ++index) {
      const uint64_t seq = SeqOfPoint({0x20000001, 40 + call, {}}, i);
      EXPECT_EQ(SeqOfPoint(joined, index), seq) << index;
      EXPECT_GT(seq, last);
      last = seq;
    }
  }
  EXPECT_GT(SeqOfPoint(joined, index), last) << "more points than were told";
}

}  // namespace
}  // namespace athanor
