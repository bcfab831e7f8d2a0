#include "record/logs/log_index.h"

#include <gtest/gtest.h>

#include <limits>

namespace athanor {
namespace {

constexpr LogKey kOut{1, 0, 0, LogStream::kStdout};
constexpr LogKey kErr{1, 0, 0, LogStream::kStderr};

std::string Coded(const LogIndexEntry& entry) {
  std::string bytes;
  AddLogIndexEntry(bytes, entry);
  return bytes;
}

TEST(LogIndex, AnEntryIsFortyBytesAndComesBackWhole) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const LogIndexEntry entry{{kMost, kMost - 1, kMost - 2, LogStream::kStderr},
                            std::numeric_limits<int64_t>::min(),
                            std::numeric_limits<uint64_t>::max(),
                            kMost - 3,
                            kMost - 4};
  const std::string bytes = Coded(entry);
  ASSERT_EQ(bytes.size(), kLogIndexEntryBytes);
  EXPECT_EQ(DecodeLogIndexEntry(bytes), entry);
}

// Planted bug: the checksum leaves out a field.
TEST(LogIndex, EveryFlippedBitIsSeen) {
  const std::string bytes = Coded({kErr, 1'700'000'000'000, 4096, 80, 0xDEADBEEF});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeLogIndexEntry(flipped)) << bit;
  }
}

TEST(LogIndex, FileNamesAreReadAsTheyAreWrittenAndNoOthers) {
  for (const LogKey& key : {kOut, kErr, LogKey{12, 3, 4'000'000'000, LogStream::kSetup}}) {
    EXPECT_EQ(LogKey::Parse(key.FileName()), key);
  }
  EXPECT_EQ(kOut.FileName(), "a1-h0-r0-stdout.log");
  for (const char* name :
       {"", "index", "a1-h0-r0-stdout", "a1-h0-r0-stdin.log", "a01-h0-r0-stdout.log",
        "a1-h0-r4294967296-stdout.log", "a-1-h0-r0-stdout.log", "a1-h0-r0-stdout.log.log",
        "xa1-h0-r0-stdout.log", "a1-h0-r0-.log"}) {
    EXPECT_FALSE(LogKey::Parse(name)) << name;
  }
}

TEST(LogIndex, ARightIndexIsLeftAlone) {
  LogIndexCheck check({{kOut, {30, 0}}, {kErr, {5, 0}}});
  EXPECT_FALSE(check.Next(Coded({kOut, 1, 0, 10, 0})));
  EXPECT_FALSE(check.Next(Coded({kErr, 1, 0, 5, 0})));
  EXPECT_FALSE(check.Next(Coded({kOut, 1, 10, 20, 0})));
  EXPECT_FALSE(check.Next(Coded({kOut, 1, 0, 0, 0})));  // void
  EXPECT_TRUE(check.Missing().empty());
}

TEST(LogIndex, BytesWithoutAnEntryGoToTheNextOneOrToANewOne) {
  using Files = std::map<LogKey, LogIndexCheck::File>;
  LogIndexCheck check(Files{{kOut, {50, 77}}});
  EXPECT_FALSE(check.Next(Coded({kOut, 1, 0, 10, 0})));
  const auto damaged = check.Next(std::string(kLogIndexEntryBytes, 'x'));
  ASSERT_TRUE(damaged);
  EXPECT_EQ(damaged->length, 0u);
  const auto grown = check.Next(Coded({kOut, 3, 20, 10, 0}));
  ASSERT_TRUE(grown);
  EXPECT_EQ(grown->offset, 10u);
  EXPECT_EQ(grown->length, 20u);
  const auto missing = check.Missing();
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0], (LogIndexEntry{kOut, 77, 30, 20, 0}));
}

TEST(LogIndex, EntriesOfLostOrDoubledBytesAreShortenedOrVoid) {
  using Files = std::map<LogKey, LogIndexCheck::File>;
  LogIndexCheck check(Files{{kOut, {15, 0}}});
  EXPECT_FALSE(check.Next(Coded({kOut, 1, 0, 10, 0})));
  EXPECT_EQ(check.Next(Coded({kOut, 1, 5, 10, 0}))->length, 0u);
  const auto cut = check.Next(Coded({kOut, 1, 10, 20, 0}));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->length, 5u);
  EXPECT_EQ(check.Next(Coded({kOut, 1, 30, 5, 0}))->length, 0u);
  EXPECT_EQ(check.Next(Coded({kErr, 1, 0, 5, 0}))->length, 0u);
  EXPECT_TRUE(check.Missing().empty());
}

}  // namespace
}  // namespace athanor
