#include "record/logs/log_lines.h"

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "record/logs/log_testing.h"

namespace athanor {
namespace {

constexpr LogKey kOut{};
constexpr LogKey kErr{1, 0, 0, LogStream::kStderr};
constexpr LogKey kSetup{1, 0, 0, LogStream::kSetup};
constexpr LogKey kSecond{1, 0, 1, LogStream::kStdout};

struct Fixture {
  const TestDir dir;
  const JobId job = JobId::New();
  OpenedLog log{dir.path()};
  LogLines lines{*log.store};

  void Add(const LogKey& key, std::string_view bytes) {
    ASSERT_TRUE(log.Append(job, key, log.Length(job, key), bytes));
  }
  std::vector<std::string> Read(std::optional<uint64_t> from, size_t count, LogPart part = {}) {
    return lines.Read(job, part, from, count).value().lines;
  }
};

using Lines = std::vector<std::string>;

TEST(LogLines, AnyPageOfALongLogIsTheLinesOfThatNumber) {
  Fixture f;
  std::string text;
  for (int i = 0; i < 5000; ++i) {
    text += "line " + std::to_string(i) + "\n";
    if (i % 700 == 699) {
      f.Add(kOut, text.substr(0, text.size() - 4));  // a line that goes on in the next chunk
      f.Add(kOut, text.substr(text.size() - 4));
      text.clear();
    }
  }
  f.Add(kOut, text);
  for (const uint64_t from : {0, 1, 255, 256, 257, 698, 699, 700, 2560, 4998}) {
    EXPECT_EQ(f.Read(from, 2),
              (Lines{"line " + std::to_string(from), "line " + std::to_string(from + 1)}));
  }
  EXPECT_EQ(f.Read(4999, 10), Lines{"line 4999"});
  EXPECT_EQ(f.Read(std::nullopt, 1), Lines{"line 4999"});
  const auto beyond = f.lines.Read(f.job, {}, 9000, 5).value();
  EXPECT_EQ(beyond.total, 5000u);
  EXPECT_EQ(beyond.from, 5000u);
  EXPECT_TRUE(beyond.lines.empty());
}

TEST(LogLines, RanksDoNotContinueEachOthersLines) {
  Fixture f;
  f.Add(kOut, "zero one\nzero tw");
  f.Add(kSecond, "one one\none two\n");
  f.Add(kOut, "o\n");
  const auto all = f.lines.Read(f.job, {}, 0, 10).value();
  EXPECT_EQ(all.lines, (Lines{"zero one", "zero tw", "one one", "one two", "o"}));
  EXPECT_EQ(all.ranks, (std::vector<uint32_t>{0, 0, 1, 1, 0}));
  EXPECT_EQ(all.total, 5u);
  EXPECT_EQ(f.lines.Read(f.job, {}, 3, 1).value().lines, Lines{"one two"});
  LogPart second;
  second.rank = 1;
  EXPECT_EQ(f.Read(0, 10, second), (Lines{"one one", "one two"}));
  const auto found =
      f.lines
          .Search(
              f.job, {},
              [](std::string_view line) { return line.find("two") != std::string_view::npos; }, 10)
          .value();
  ASSERT_EQ(found.matches.size(), 1u);
  EXPECT_EQ(found.matches[0].line, 3u);
  EXPECT_EQ(found.matches[0].rank, 1u);
}

TEST(LogLines, AHostHasItsOwnSetUpAndItsOwnRanks) {
  Fixture f;
  f.Add(kSetup, "here\n");
  f.Add({1, 1, 2, LogStream::kSetup}, "there\n");
  f.Add(kOut, "first\n");
  f.Add({1, 1, 2, LogStream::kStdout}, "third\n");
  LogPart part;
  part.setup = true;
  part.host = 1;
  EXPECT_EQ(f.Read(0, 10, part), (Lines{"there", "third"}));
  part.host = 0;
  EXPECT_EQ(f.Read(0, 10, part), (Lines{"here", "first"}));
}

TEST(LogLines, WhatTheLogGainsIsThereAtTheNextReading) {
  Fixture f;
  f.Add(kOut, "one\ntw");
  EXPECT_EQ(f.Read(0, 10), (Lines{"one", "tw"}));
  f.Add(kOut, "o\nthree");
  EXPECT_EQ(f.Read(0, 10), (Lines{"one", "two", "three"}));
  f.Add(kOut, "\n");
  EXPECT_EQ(f.lines.Read(f.job, {}, 0, 10)->total, 3u);
  f.Add(kOut, "\n\n");
  EXPECT_EQ(f.Read(3, 10), (Lines{"", ""}));
}

// The planted bug: a line cut at its limit before its carriage returns are looked at. A bar of
// thousands of updates then stays at its first ones.
TEST(LogLines, AProgressBarIsShownAsItStandsLast) {
  Fixture f;
  f.Add(kOut, "start\r\n");
  std::string bar;
  for (int i = 0; i < 5000; ++i) bar += "\r" + std::to_string(i) + " of 5000";
  f.Add(kOut, bar);
  EXPECT_EQ(f.Read(0, 10), (Lines{"start", "4999 of 5000"}));
  f.Add(kOut, "\r");  // may be half of an end of line
  EXPECT_EQ(f.Read(1, 10), Lines{"4999 of 5000"});
  f.Add(kOut, "5000 of 5000");
  EXPECT_EQ(f.Read(1, 10), Lines{"5000 of 5000"});
  f.Add(kOut, "\r");
  f.Add(kOut, "\ndone\n");
  EXPECT_EQ(f.Read(0, 10), (Lines{"start", "5000 of 5000", "done"}));
}

TEST(LogLines, PartsAreCountedApart) {
  Fixture f;
  f.Add(kSetup, "pip\n");
  f.Add(kOut, "a\r\n");
  f.Add(kErr, "b\n");
  f.Add(kSecond, "c\n");
  EXPECT_EQ(f.Read(0, 9), (Lines{"a", "b", "c"}));
  EXPECT_EQ(f.Read(0, 9, {true, false, {}}), Lines{"pip"});
  EXPECT_EQ(f.Read(0, 9, {true, true, {}}), (Lines{"pip", "a", "b", "c"}));
  EXPECT_EQ(f.Read(0, 9, {false, true, 1}), Lines{"c"});
}

TEST(LogLines, AJobThatPrintedNothingHasNoLines) {
  Fixture f;
  const auto page = f.lines.Read(f.job, {}, std::nullopt, 10).value();
  EXPECT_EQ(page.total, 0u);
  EXPECT_FALSE(page.first_error);
}

TEST(LogLines, TheFirstErrorIsFoundAlsoAcrossChunks) {
  Fixture f;
  f.Add(kOut, "fine\nerror: 0.25 of samples\nTrace");
  EXPECT_FALSE(f.lines.Read(f.job, {}, 0, 1)->first_error);
  f.Add(kOut, "back (most recent call last):\n  File\nValueError: no\n");
  EXPECT_EQ(f.lines.Read(f.job, {}, 0, 1)->first_error, 2u);
}

TEST(LogLines, ALineThatLooksLikeAnErrorIsOne) {
  for (const char* line : {"ValueError: bad", "torch.cuda.OutOfMemoryError: CUDA", "KeyError",
                           "2026-01-01 ERROR loader died", "[FATAL] x", "Segmentation fault",
                           "terminate called after throwing"}) {
    EXPECT_TRUE(LooksLikeError(line)) << line;
  }
  for (const char* line :
       {"error=0.1", "validation error: 0.3", "ERRORS_SEEN 0", "no Error here", "Errors: 0", ""}) {
    EXPECT_FALSE(LooksLikeError(line)) << line;
  }
}

TEST(LogLines, ASearchCountsAllAndShowsTheFirst) {
  Fixture f;
  std::string text;
  for (int i = 0; i < 300; ++i) text += i % 3 == 0 ? "hit\n" : "miss\n";
  f.Add(kOut, text + "hit");
  const auto found = f.lines.Search(
      f.job, {}, [](std::string_view s) { return s == "hit"; }, 2);
  EXPECT_EQ(found->total, 101u);
  ASSERT_EQ(found->matches.size(), 2u);
  EXPECT_EQ(found->matches[1].line, 3u);
}

TEST(LogLines, ALineOfMegabytesIsShownByItsBeginning) {
  Fixture f;
  f.Add(kOut, std::string(3 << 20, 'x') + "\nnext\n");
  const auto lines = f.Read(0, 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_LT(lines[0].size(), LogLines::kMostLine + 10);
  EXPECT_EQ(lines[1], "next");
}

}  // namespace
}  // namespace athanor
