#include "base/ids.h"
#include "base/id_floor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "base/text/text.h"

namespace athanor {
namespace {

TEST(Ulid, BothFormsReadBackInAnyCase) {
  for (int i = 0; i < 1000; ++i) {
    const Ulid id = NewUlid();
    EXPECT_EQ(Ulid::Parse(id.ToString()), id);
    EXPECT_EQ(Ulid::Parse(ToUpper(id.ToString())), id);
    EXPECT_EQ(Ulid::Parse(id.ToHex()), id);
    EXPECT_EQ(Ulid::Parse(ToUpper(id.ToHex())), id);
  }
}

TEST(Ulid, KnownTextsHaveKnownBits) {
  EXPECT_EQ(Ulid{}.ToString(), "00000000000000000000000000");
  Ulid ones;
  ones.bytes.fill(0xFF);
  EXPECT_EQ(ones.ToString(), "7zzzzzzzzzzzzzzzzzzzzzzzzz");
  // 1,469,918,176,385 ms, the time of the ULID specification's example.
  const auto id = Ulid::Parse("01ARYZ6S41TSV4RRFFQ69G5FAV");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->ToHex().substr(0, 12), "01563df36481");
  // Letters that are easily misread count as the digits they look like.
  EXPECT_EQ(Ulid::Parse("0LARYZ6S4ITSV4RRFFQ69G5FAV"), id);
  EXPECT_EQ(Ulid::Parse("O1ARYZ6S41TSV4RRFFQ69G5FAV"), id);
}

TEST(Ulid, WhatIsNoIdIsRefused) {
  const std::string good = NewUlid().ToString();
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", "8" + good.substr(1), "../" + good.substr(3),
        std::string(26, 'u'), std::string(32, 'g'), good.substr(0, 25) + std::string(1, '\0')}) {
    EXPECT_FALSE(Ulid::Parse(bad)) << bad;
  }
}

TEST(Ulid, RisesStrictlyEvenWithinAMillisecondAndWhenTheClockGoesBack) {
  Ulid last = NewUlid(2'000'000'000'000);
  for (int i = 0; i < 10'000; ++i) {
    const Ulid next = NewUlid(2'000'000'000'000 - i);
    ASSERT_LT(last, next);
    ASSERT_LT(last.ToString(), next.ToString());
    last = next;
  }
}

TEST(Ulid, ThreadsNeverShareAnId) {
  std::vector<std::vector<Ulid>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < 5'000; ++i) mine.push_back(NewUlid());
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<Ulid> all;
  for (const auto& mine : made) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(all.size(), 20'000u);
}

TEST(Ulid, AForkedChildMakesOtherIdsThanItsParent) {
  // In the future, so that both continue from the state that they share.
  constexpr int64_t kLater = 3'000'000'000'000;
  (void)NewUlid(kLater);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Ulid id = NewUlid(kLater);
    const bool wrote = write(ends[1], id.bytes.data(), id.bytes.size()) == 16;
    _exit(wrote ? 0 : 1);
  }
  const Ulid mine = NewUlid(kLater);
  Ulid theirs;
  ASSERT_EQ(read(ends[0], theirs.bytes.data(), theirs.bytes.size()), 16);
  waitpid(child, nullptr, 0);
  EXPECT_NE(mine, theirs);
  close(ends[0]);
  close(ends[1]);
}

TEST(RandomHex, HasTheAskedLengthAndDiffers) {
  EXPECT_EQ(RandomHex(16).size(), 32u);
  EXPECT_EQ(RandomHex(0), "");
  EXPECT_NE(RandomHex(16), RandomHex(16));
}

TEST(Id, IsItsOwnType) {
  using First = Id<struct FirstTag>;
  const First id = First::New();
  EXPECT_EQ(First::Parse(id.ToString()), id);
  EXPECT_FALSE(First::Parse("nothing"));
  EXPECT_FALSE(id.is_zero());
  EXPECT_TRUE(First{}.is_zero());
}

// Red without KeepIdsAbove: an id of an old time is below the stored one.
TEST(Ulid, RisesAboveWhatWasKeptBeforeTheClockWasSetBack) {
  const Ulid kept = NewUlid(4'000'000'000'000);  // in 2096
  KeepIdsAbove(kept);
  EXPECT_GT(NewUlid(1'000), kept);
  Ulid later = kept;
  later.bytes[5] += 100;
  KeepIdsAbove(later);
  EXPECT_GT(NewUlid(1'000), later);
  KeepIdsAbove(kept);  // nothing goes back
  EXPECT_GT(NewUlid(1'000), later);
}

}  // namespace
}  // namespace athanor
