#include "run/checkpoint/file_keeper.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "run/checkpoint/checkpoint_testing.h"

namespace athanor {
namespace {

struct Keeping {
  TestDir dir;
  TestJobFiles job;
  std::unique_ptr<JobFiles> parts = job.Open();
  BlobStore store = BlobStore::Open(dir / "parts").value();
  UniqueFd files;
  Keeping(Reach reach, const std::string& bytes) : job(reach, dir.path(), "") {
    Put(dir / "files/f", bytes);
    files = OpenDir(dir / "files").value();
  }
  FileStamp Stamp() const {
    return ScanFolder(*HeldFolder::At(dir / "files"))->files.at("f").stamp;
  }
};

class FileKeeper : public ::testing::TestWithParam<Reach> {};
INSTANTIATE_TEST_SUITE_P(Files, FileKeeper, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

TEST_P(FileKeeper, KeepsAFileInPartsAndEmptyOnesInNone) {
  const std::string bytes = std::string(1'000, 'a') + std::string(1'000, 'b') + "c";
  Keeping keeping(GetParam(), bytes);
  KeptFile kept{keeping.Stamp(), {}, false};
  ASSERT_TRUE(KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), nullptr}, kept).ok());
  EXPECT_TRUE(kept.complete);
  ASSERT_EQ(kept.parts.size(), 3u);
  EXPECT_EQ(kept.parts[1], Sha256Hex(std::string(1'000, 'b')));
  for (const auto& part : kept.parts) EXPECT_TRUE(keeping.store.Verify(part).ok());

  KeptFile named{keeping.Stamp(), {}, false};
  ASSERT_TRUE(KeepFile(keeping.files.get(), "f", 1'000, {}, named).ok());
  EXPECT_EQ(named.parts, kept.parts);

  Put(keeping.dir / "files/f", "");
  KeptFile empty{keeping.Stamp(), {}, false};
  ASSERT_TRUE(
      KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), nullptr}, empty).ok());
  EXPECT_TRUE(empty.complete && empty.parts.empty());
}

// Planted bug: the stamp is compared only before the first part.
TEST_P(FileKeeper, AFileThatChangesWhileItIsReadIsNotTaken) {
  for (const bool grows : {false, true}) {
    Keeping keeping(GetParam(), std::string(5'000, 'a'));
    KeptFile kept{keeping.Stamp(), {}, false};
    size_t chunks = 0;
    Yielder yielder([&](auto) {
      if (++chunks == 3) {
        const int fd = ::open((keeping.dir / "files/f").c_str(), O_WRONLY);
        EXPECT_EQ(::pwrite(fd, "z", 1, grows ? 5'000 : 0), 1);
        ::close(fd);
      }
      return true;
    });
    const auto done =
        KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), &yielder}, kept);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, ErrorCode::kConflict);
    EXPECT_FALSE(kept.complete);
    EXPECT_TRUE(kept.parts.empty());
  }
}

TEST_P(FileKeeper, AFileThatWasReplacedOrRemovedIsNotTaken) {
  Keeping keeping(GetParam(), "first");
  KeptFile kept{keeping.Stamp(), {}, false};
  Put(keeping.dir / "files/f", "other");
  EXPECT_EQ(
      KeepFile(keeping.files.get(), "f", 9, {keeping.parts.get(), nullptr}, kept).error().code,
      ErrorCode::kConflict);
  ASSERT_EQ(::unlink((keeping.dir / "files/f").c_str()), 0);
  EXPECT_EQ(
      KeepFile(keeping.files.get(), "f", 9, {keeping.parts.get(), nullptr}, kept).error().code,
      ErrorCode::kConflict);
  ASSERT_EQ(::symlink("/etc/passwd", (keeping.dir / "files/f").c_str()), 0);
  EXPECT_EQ(
      KeepFile(keeping.files.get(), "f", 9, {keeping.parts.get(), nullptr}, kept).error().code,
      ErrorCode::kConflict);
}

TEST_P(FileKeeper, GoesOnAtThePartWhereItWasInterrupted) {
  Keeping keeping(GetParam(),
                  std::string(1'000, 'a') + std::string(1'000, 'b') + std::string(1'000, 'c'));
  KeptFile kept{keeping.Stamp(), {}, false};
  size_t chunks = 0;
  Yielder until_second([&](auto) { return ++chunks < 2; });
  const auto stopped =
      KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), &until_second}, kept);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(kept.parts.size(), 1u);
  size_t more = 0;
  Yielder count([&](auto) { return ++more > 0; });
  ASSERT_TRUE(KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), &count}, kept).ok());
  EXPECT_EQ(more, 2u);
  EXPECT_EQ(kept.parts.size(), 3u);
}

// Planted bugs: parts in the order in which they came, or those behind one that failed.
TEST_P(FileKeeper, PartsThatGoAtOnceAreKeptInOrder) {
  std::string bytes;
  for (char c = 'a'; c < 'a' + 20; ++c) bytes += std::string(1'000, c);
  Keeping keeping(GetParam(), bytes + "end");
  KeptFile kept{keeping.Stamp(), {}, false};
  std::atomic<int> spent = 0;
  Yielder stops([&](auto) { return ++spent < 9; });
  const auto stopped =
      KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), &stops, 3}, kept);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_FALSE(kept.complete);
  EXPECT_LT(kept.parts.size(), 9u);
  ASSERT_TRUE(
      KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), nullptr, 3}, kept).ok());
  ASSERT_EQ(kept.parts.size(), 21u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(kept.parts[i], Sha256Hex(std::string(1'000, static_cast<char>('a' + i))));
  }
  for (const auto& part : kept.parts) EXPECT_TRUE(keeping.store.Verify(part).ok());
}

TEST_P(FileKeeper, AFileThatChangesWhileItsPartsGoAtOnceIsNotTaken) {
  Keeping keeping(GetParam(), std::string(20'000, 'a'));
  KeptFile kept{keeping.Stamp(), {}, false};
  std::atomic<int> spent = 0;
  Yielder yielder([&](auto) {
    if (++spent == 5) {
      const UniqueFd fd(::open((keeping.dir / "files/f").c_str(), O_WRONLY | O_CLOEXEC));
      EXPECT_EQ(::pwrite(fd.get(), "z", 1, 100), 1);
    }
    return true;
  });
  const auto done =
      KeepFile(keeping.files.get(), "f", 1'000, {keeping.parts.get(), &yielder, 3}, kept);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(kept.changed && kept.parts.empty());
}

TEST(Yielder, TakesTheMachineForBusyWhenItCannotTell) {
  Yielder yielder([](auto) { return true; }, "/nonexistent");
  EXPECT_TRUE(yielder.machine_busy());
}

TEST(Yielder, PausesLongerOnABusyMachine) {
  const auto pause_of = [](const std::string& stat) {
    std::chrono::nanoseconds longest{0};
    Yielder yielder(
        [&](std::chrono::nanoseconds pause) {
          longest = std::max(longest, pause);
          return true;
        },
        stat);
    std::string work(1 << 20, 'x');
    for (int i = 0; i < 3; ++i) {
      (void)Sha256Hex(work);
      EXPECT_TRUE(yielder.Spend(1));
    }
    return longest;
  };
  const TestDir dir;
  Put(dir / "stat", "cpu 1 2 3 4 5\n");  // never any idler: but not known before the second look
  EXPECT_EQ(pause_of(dir / "stat").count(), 0);
  EXPECT_GT(pause_of("/nonexistent").count(), 0);
}

// Next to a thread that never rests, on one processor, a lowered one waits far longer than it runs.
// Planted bug: the kernel's first figure, the time it ran, is taken for the wait.
TEST(Yielder, TellsAWaitForAProcessorFromWork) {
  cpu_set_t all, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(all), &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  std::atomic<bool> done{false};
  std::thread training([&] {
    EXPECT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    while (!done) {
    }
  });
  std::chrono::nanoseconds waited{0}, ran{0};
  std::thread looking([&] {
    EXPECT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    Yielder::LowerPriority();
    const auto give_up = std::chrono::steady_clock::now() + Millis(60'000);
    while (waited < Millis(100) && std::chrono::steady_clock::now() < give_up) {
      waited = Yielder::WaitedForProcessor();
    }
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    ran = std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  });
  looking.join();
  done = true;
  training.join();
  EXPECT_GE(waited, Millis(100));
  EXPECT_LT(ran, waited);
}

}  // namespace
}  // namespace athanor
