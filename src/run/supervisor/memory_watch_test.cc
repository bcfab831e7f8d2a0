#include "run/supervisor/memory_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr uint64_t kMb = 1 << 20;

TEST(MemoryWatch, ReadsWhatTheKernelTells) {
  const std::string status =
      "Name:\tRssAnon: 7 kB\nVmRSS:\t    5000 kB\nRssAnon:\t    1000 kB\nRssFile:\t    3000 kB\n"
      "RssShmem:\t    2000 kB\nVmSwap:\t     500 kB\nThreads:\t1\n";
  EXPECT_EQ(ParseStatusMemory(status), (ProcessMemory{1000 << 10, 2000 << 10, 500 << 10}));
  EXPECT_EQ(ParseStatusMemory("Name:\tkthread\nThreads:\t1\n").sum(), 0u);
  const std::string rollup =
      "1000-2000 ---p 00000000 00:00 0    [rollup]\nRss:  900 kB\nPss:  800 kB\n"
      "Pss_Anon:  10 kB\nPss_File:  600 kB\nPss_Shmem:   30 kB\nSwap:  9 kB\nSwapPss:   4 kB\n";
  EXPECT_EQ(ParseRollupMemory(rollup)->sum(), uint64_t{44} << 10);
  EXPECT_FALSE(ParseRollupMemory("Rss:  900 kB\nPss:  800 kB\n"));  // an old kernel
  EXPECT_FALSE(ParseRollupMemory(""));
  EXPECT_EQ(ParseStatusMemory("RssAnon:\t99999999999999999999 kB\n").sum(), 0u);
  EXPECT_EQ(ParseStatusMemory("RssAnon:\t18446744073709551615 kB\n").sum(), 0u);
}

// Planted bug: a pause by the cost of a look alone. A tree of a thousand processes takes 20 ms to
// look at, and what fills memory at 1 GB/s is then found half a second late.
TEST(MemoryWatch, LooksOftenEnoughForAGigabyteASecond) {
  for (uint64_t limit = 64 * kMb; limit <= uint64_t{64} << 30; limit *= 2) {
    for (int64_t look_us : {50, 2'000, 20'000}) {
      uint64_t used = 0;
      int looks = 0;
      while (used <= limit) {
        const int64_t pause = PauseOfWatch(limit, used, look_us);
        ASSERT_GE(pause, 2);
        ASSERT_LE(pause, look_us > 2'000 ? 2'000 : 250);
        used += static_cast<uint64_t>(pause * 1'000 + look_us) * 1'000;
        ++looks;
      }
      EXPECT_LT(used, limit + limit / 4 + 20 * kMb) << limit << " " << look_us;
      EXPECT_LT(looks, 2'000);
    }
  }
  // Far below the limit it costs next to nothing.
  EXPECT_EQ(PauseOfWatch(uint64_t{16} << 30, kMb, 50), 250);
}

// /proc as plain files, so that each process uses what the test says.
class FakeProc : public ::testing::Test {
 protected:
  struct Uses {
    uint64_t anonymous_mb = 0;
    uint64_t shared_mb = 0;
    uint64_t part_mb = 0;  // of both, by smaps_rollup; 0: there is no such file
  };

  void Put(int pid, int ppid, const std::string& name, const Uses& uses, char state = 'S',
           uint64_t faults = 0) {
    const std::string dir = dir_.path() + "/" + std::to_string(pid);
    ASSERT_TRUE(MakeDirs(dir).ok());
    const std::string stat = std::to_string(pid) + " (" + name + ") " + state + " " +
                             std::to_string(ppid) + " 1 1 0 -1 0 " + std::to_string(faults) +
                             " 0 0 0 0 0 0 0 20 0 1 0 77 0 " +
                             std::to_string(uses.anonymous_mb * 256) + " 0\n";
    ASSERT_TRUE(ReplaceFile(dir + "/stat", stat).ok());
    const auto kb = [](uint64_t mb) { return std::to_string(mb << 10) + " kB\n"; };
    ASSERT_TRUE(ReplaceFile(dir + "/status", "Name:\t" + name + "\nRssAnon:\t" +
                                                 kb(uses.anonymous_mb) + "RssShmem:\t" +
                                                 kb(uses.shared_mb) + "VmSwap:\t0 kB\n")
                    .ok());
    if (uses.part_mb == 0) return;
    ASSERT_TRUE(ReplaceFile(dir + "/smaps_rollup",
                            "Pss_Anon:\t" + kb(uses.part_mb) + "Pss_Shmem:\t0 kB\nSwapPss:\t0 kB\n")
                    .ok());
  }

  TestDir dir_;
};

TEST_F(FakeProc, BelowTheLimitNothingIsKilled) {
  Put(10, 1, "python3", {200, 0, 0});
  Put(11, 10, "worker", {90, 0, 0});
  Put(99, 2, "another", {5000, 0, 0});  // no descendant
  MemoryWatch watch(300 * kMb, dir_.path());
  EXPECT_FALSE(watch.Look(1).kill);
  EXPECT_EQ(watch.peak(), 290 * kMb);
}

TEST_F(FakeProc, TheLargestIsKilledAndNotCountedWhileItDies) {
  Put(10, 1, "python3", {100, 0, 100});
  Put(11, 10, "loader", {150, 0, 150});
  Put(12, 11, "grandchild", {60, 0, 60});
  MemoryWatch watch(300 * kMb, dir_.path());
  const auto seen = watch.Look(1);
  ASSERT_TRUE(seen.kill);
  EXPECT_EQ(seen.kill->pid, 11);
  EXPECT_EQ(seen.kill->name, "loader");
  EXPECT_FALSE(watch.Look(1).kill);
  EXPECT_EQ(watch.peak(), 310 * kMb);
  // Another that goes on growing is not spared for it.
  Put(10, 1, "python3", {320, 0, 320});
  ASSERT_TRUE(watch.Look(1).kill);
}

// Planted bug: adding up resident memory: eight workers that share one data set are killed.
TEST_F(FakeProc, SharedMemoryCountsOnce) {
  Put(10, 1, "python3", {20, 200, 45});
  for (int pid = 11; pid < 19; ++pid) Put(pid, 10, "worker", {21, 200, 24});
  MemoryWatch watch(300 * kMb, dir_.path());
  EXPECT_FALSE(watch.Look(1).kill);
  EXPECT_EQ(watch.peak(), (45 + 8 * 24) * kMb);
}

// Planted bug: going by resident memory until it changes. Each child writes to what it inherited,
// which makes copies: nothing but the faults tells.
TEST_F(FakeProc, CopiesOfWhatWasSharedAreFound) {
  Put(10, 1, "python3", {20, 200, 45});
  for (int pid = 11; pid < 19; ++pid) Put(pid, 10, "worker", {21, 200, 24});
  MemoryWatch watch(300 * kMb, dir_.path());
  EXPECT_FALSE(watch.Look(1).kill);
  for (int pid = 11; pid < 19; ++pid) Put(pid, 10, "worker", {21, 200, 40}, 'S', 16 * 256);
  EXPECT_TRUE(watch.Look(1).kill);
}

// Planted bug: the careful count at each look, which takes a CPU for itself.
TEST_F(FakeProc, WhatCannotBePassedIsNotCountedCarefully) {
  Put(10, 1, "python3", {20, 200, 45});
  for (int pid = 11; pid < 19; ++pid) Put(pid, 10, "worker", {21, 200, 24});
  MemoryWatch watch(300 * kMb, dir_.path());
  EXPECT_FALSE(watch.Look(1).kill);
  EXPECT_EQ(watch.peak(), 237 * kMb);
  // 237 MB and 60 more at most: below the limit, whatever the careful count would say.
  Put(11, 10, "worker", {21, 230, 5000}, 'S', 30 * 256);
  EXPECT_FALSE(watch.Look(1).kill);
  Put(12, 10, "worker", {21, 204, 24});
  EXPECT_TRUE(watch.Look(1).kill);
}

// Between vfork and exec, both share one memory, and each reports all of it.
TEST_F(FakeProc, AChildInItsParentsMemoryCountsNothing) {
  Put(10, 1, "python3", {200, 0, 200});
  Put(11, 10, "python3", {200, 0, 200});
  MemoryWatch watch(300 * kMb, dir_.path());
  EXPECT_FALSE(watch.Look(1).kill);
  EXPECT_EQ(watch.peak(), 200 * kMb);
}

TEST_F(FakeProc, AProcessThatHidesItsPartsCountsWhole) {
  Put(10, 1, "python3", {200, 0, 190});
  Put(11, 10, "sealed", {120, 0, 0});
  MemoryWatch watch(300 * kMb, dir_.path());
  ASSERT_TRUE(watch.Look(1).kill);
  EXPECT_EQ(watch.peak(), 310 * kMb);
}

TEST_F(FakeProc, TheDeadAndTheGoneCountNothing) {
  Put(10, 1, "python3", {100, 0, 0});
  Put(11, 10, "dead", {900, 0, 0}, 'Z');
  ASSERT_TRUE(MakeDirs(dir_.path() + "/12").ok());
  MemoryWatch watch(300 * kMb, dir_.path());
  EXPECT_FALSE(watch.Look(1).kill);
  EXPECT_FALSE(watch.Look(4711).kill);
  EXPECT_EQ(watch.peak(), 100 * kMb);
}

}  // namespace
}  // namespace athanor
