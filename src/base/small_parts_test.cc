// The parts of this room that need only a few lines of tests each.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/sim_executor.h"
#include "base/exec/thread_pool.h"
#include "base/io/crc32c.h"
#include "base/io/files.h"
#include "base/io/folder_hints.h"
#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "base/log.h"
#include "base/text/format.h"
#include "base/text/json.h"
#include "base/text/rfc3339.h"
#include "base/text/text.h"

namespace athanor {
namespace {

UniqueFd MemoryFile(std::string_view bytes = {}) {
  UniqueFd fd(memfd_create("test", MFD_CLOEXEC));
  EXPECT_TRUE(WriteAll(fd.get(), bytes).ok());
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

TEST(Format, WorksFromOurOwnLibrary) {
  EXPECT_EQ(fmt::format("{} {:.3f} {} {:#x} {:>4}", 1, 2.5, 3.14f, 255, "hi"),
            "1 2.500 3.14 0xff   hi");
  EXPECT_EQ(fmt::format("{} {}", 0.1, 1e300), "0.1 1e+300");
  EXPECT_THROW((void)fmt::format(fmt::runtime("{"), 1), fmt::format_error);
}

TEST(FolderHints, AFolderOfUnrelatedOnesSaysSo) {
  const TestDir dir;
  SpreadSubfolders(dir.path());
  SpreadSubfolders(dir.path());
  SpreadSubfolders(dir / "missing");
  const UniqueFd fd(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY));
  struct statfs about {};
  ASSERT_EQ(::fstatfs(fd.get(), &about), 0);
  int flags = 0;
  if (::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) == 0 && about.f_type == 0xEF53) {  // ext4
    EXPECT_NE(flags & FS_TOPDIR_FL, 0);
  }
}

TEST(Clock, Rfc3339HoldsAllOfTime) {
  EXPECT_EQ(Rfc3339(WallTime{0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(Rfc3339(WallTime{1'794'774'353'120}), "2026-11-15T20:25:53.120Z");
  EXPECT_EQ(Rfc3339(WallTime{-1}), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(Rfc3339(WallTime{951'782'400'000}), "2000-02-29T00:00:00.000Z");
  EXPECT_FALSE(Rfc3339(WallTime{INT64_MAX}).empty());
  EXPECT_FALSE(Rfc3339(WallTime{INT64_MIN}).empty());
}

TEST(Clock, ReadsBackTheTimesItWrites) {
  for (int64_t ms : {int64_t{0}, int64_t{1'794'774'353'120}, int64_t{-1}, int64_t{951'782'400'000},
                     int64_t{253'402'300'799'999}}) {
    ASSERT_TRUE(ParseRfc3339(Rfc3339({ms}))) << ms;
    EXPECT_EQ(ParseRfc3339(Rfc3339({ms}))->ms, ms);
  }
  EXPECT_EQ(ParseRfc3339("2000-02-29T00:00:00Z")->ms, 951'782'400'000);
  EXPECT_EQ(ParseRfc3339("2000-02-29T00:00:00.5Z")->ms, 951'782'400'500);
  EXPECT_EQ(ParseRfc3339("2000-02-29T00:00:00.123456Z")->ms, 951'782'400'123);
  for (const char* bad :
       {"", "2000", "2000-02-30T00:00:00Z", "2000-13-01T00:00:00Z", "2000-02-29T24:00:00Z",
        "2000-02-29T00:00:61Z", "2000-02-29T00:00:00", "2000-02-29T00:00:00.Z",
        "2000-02-29T00:00:00+01:00", "2000-02-29 00:00:00Z", "-200-02-29T00:00:00Z",
        "2000-02-29T00:00:00Z ", "2000-2-29T00:00:00Z"}) {
    EXPECT_FALSE(ParseRfc3339(bad)) << bad;
  }
}

TEST(Clock, SystemClockNeverGoesBack) {
  const SystemClock clock;
  const Millis before = clock.Monotonic();
  EXPECT_GE(clock.Monotonic(), before);
  EXPECT_GT(clock.Wall().ms, 1'700'000'000'000);
}

TEST(Sha256, MatchesTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1'000'000, 'a');
  const std::string expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
  EXPECT_EQ(Sha256Hex(million), expected);
  EXPECT_EQ(Sha256File(MemoryFile(million).get()), expected);
  Sha256 hash;
  hash.Update("a");
  Sha256 moved = std::move(hash);
  moved.Update("bc");
  EXPECT_EQ(moved.HexDigest(), Sha256Hex("abc"));
  EXPECT_FALSE(Sha256File(-1));
}

TEST(Crc32c, MatchesRfc3720) {
  std::string rising(32, '\0');
  std::string falling(32, '\0');
  for (size_t i = 0; i < 32; ++i) {
    rising[i] = static_cast<char>(i);
    falling[i] = static_cast<char>(31 - i);
  }
  const std::pair<std::string, uint32_t> vectors[] = {{std::string(32, '\0'), 0x8A9136AA},
                                                      {std::string(32, '\xff'), 0x62A8AB43},
                                                      {rising, 0x46DD794E},
                                                      {falling, 0x113FDB5C},
                                                      {"123456789", 0xE3069283},
                                                      {"", 0}};
  for (const auto& [bytes, crc] : vectors) {
    EXPECT_EQ(Crc32c(bytes), crc);
    EXPECT_EQ(Crc32cPortable(bytes), crc);
  }
}

TEST(Crc32c, BothWaysAgreeAtEveryLengthAndCut) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(i * 37 + 11);
  for (size_t length = 0; length <= bytes.size(); ++length) {
    const std::string_view all = std::string_view(bytes).substr(0, length);
    const uint32_t crc = Crc32c(all);
    ASSERT_EQ(Crc32cPortable(all), crc);
    for (const size_t cut : {length / 3, length / 2, length}) {
      ASSERT_EQ(Crc32c(all.substr(cut), Crc32c(all.substr(0, cut))), crc);
      ASSERT_EQ(Crc32cPortable(all.substr(cut), Crc32c(all.substr(0, cut))), crc);
    }
  }
}

TEST(Crc32c, MaskIsTensorBoards) {
  // The length field of an event file whose first record has 24 bytes.
  const std::string length("\x18\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(MaskedCrc32c(length), 0x224B7FA3u);
}

TEST(Logger, WritesOneJsonObjectALine) {
  const UniqueFd fd = MemoryFile();
  const FakeClock clock;
  Logger logger(fd.get(), clock, LogLevel::kInfo);
  logger.Log(LogLevel::kDebug, "unheard");
  logger.Log(LogLevel::kWarning, "two\nlines \xff", {{"port", "7070"}, {"quote", "\""}});
  lseek(fd.get(), 0, SEEK_SET);
  const std::string text = *ReadAll(fd.get());
  const auto lines = Split(text, '\n');
  ASSERT_EQ(lines.size(), 2u) << text;
  const auto line = ParseJson(lines[0]);
  ASSERT_TRUE(line) << lines[0];
  EXPECT_EQ((*line)["time"], "2023-11-14T22:13:20.000Z");
  EXPECT_EQ((*line)["level"], "warning");
  EXPECT_EQ((*line)["message"], "two\nlines \xEF\xBF\xBD");
  EXPECT_EQ((*line)["port"], "7070");
  EXPECT_EQ((*line)["quote"], "\"");
}

TEST(Logger, TakesItsLevelFromTheEnvironment) {
  const FakeClock clock;
  ::setenv("ATHANOR_LOG", "error", 1);
  EXPECT_FALSE(Logger(1, clock).Wants(LogLevel::kWarning));
  EXPECT_TRUE(Logger(1, clock).Wants(LogLevel::kError));
  ::setenv("ATHANOR_LOG", "debug", 1);
  EXPECT_TRUE(Logger(1, clock).Wants(LogLevel::kDebug));
  ::unsetenv("ATHANOR_LOG");
  EXPECT_FALSE(Logger(1, clock).Wants(LogLevel::kDebug));
  EXPECT_TRUE(Logger(1, clock).Wants(LogLevel::kInfo));
  EXPECT_EQ(LogLevelNamed("warn"), LogLevel::kWarning);
  EXPECT_EQ(LogLevelNamed("off"), LogLevel::kOff);
}

TEST(Logger, SurvivesADescriptorThatTakesNothing) {
  const FakeClock clock;
  Logger logger(-1, clock, LogLevel::kInfo);
  logger.Log(LogLevel::kError, "nobody hears");
}

TEST(SimExecutor, RunsByTimeThenByOrderOfPosting) {
  SimExecutor executor;
  std::string order;
  executor.After(Millis(20), [&] { order += "c"; });
  executor.After(Millis(10), [&] { order += "b"; });
  executor.Post([&] {
    order += "a";
    executor.Post([&] { order += "A"; });
  });
  executor.After(Millis(20), [&] { order += "d"; });
  const Millis start = executor.clock().Monotonic();
  EXPECT_EQ(executor.RunUntilIdle(), 5u);
  EXPECT_EQ(order, "aAbcd");
  EXPECT_EQ(executor.clock().Monotonic() - start, Millis(20));
}

TEST(SimExecutor, RunForStopsExactlyAtItsEnd) {
  SimExecutor executor;
  int ran = 0;
  std::function<void()> tick = [&] {
    ++ran;
    executor.After(std::chrono::hours(1), tick);
  };
  executor.After(std::chrono::hours(1), tick);
  const Millis start = executor.clock().Monotonic();
  EXPECT_EQ(executor.RunFor(std::chrono::minutes(24 * 60 + 30)), 24u);
  EXPECT_EQ(ran, 24);
  EXPECT_EQ(executor.clock().Monotonic() - start, Millis(std::chrono::minutes(24 * 60 + 30)));
  EXPECT_EQ(executor.RunUntilIdle(10), 10u) << "a timer that renews itself never idles";
}

TEST(SimExecutor, ACancelledTimerDoesNotRun) {
  SimExecutor executor;
  int ran = 0;
  const auto first = executor.After(Millis(5), [&] { ++ran; });
  executor.After(Millis(1), [&] { executor.Cancel(first); });
  executor.Cancel(first + 1000);
  EXPECT_EQ(executor.RunUntilIdle(), 1u);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(executor.pending(), 0u);
}

TEST(ThreadPool, FinishesWhatWasSubmittedBeforeStopReturns) {
  std::atomic<int> ran = 0;
  ThreadPool pool(3);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pool.Submit([&] { ++ran; }));
  }
  pool.Stop();
  EXPECT_EQ(ran, 1000);
  EXPECT_FALSE(pool.Submit([&] { ++ran; }));
  pool.Stop();
  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPool, RunsTasksSideBySide) {
  ThreadPool pool(2);
  std::mutex mutex;
  std::condition_variable met;
  int here = 0;
  // Each waits for the other: with one thread this would never end.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool.Submit([&] {
      std::unique_lock lock(mutex);
      ++here;
      met.notify_all();
      met.wait(lock, [&] { return here == 2; });
    }));
  }
  pool.Stop();
  EXPECT_EQ(here, 2);
}

}  // namespace
}  // namespace athanor
