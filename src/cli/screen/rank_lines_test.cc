#include "cli/screen/rank_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace athanor {
namespace {

Json Event(int rank, const char* stream = "stdout") {
  return {
      {"rank", rank}, {"host", rank < 2 ? "algo-1" : "algo-2"}, {"attempt", 1}, {"stream", stream}};
}

TEST(RankLines, EachLineIsWholeAndSaysItsRank) {
  RankLines lines({}, true, true);
  EXPECT_EQ(lines.Take(Event(0), "one\ntw"), "[0] one\n");
  EXPECT_EQ(lines.Take(Event(3), "drei\n"), "[3] drei\n");
  EXPECT_EQ(lines.Take(Event(0, "stderr"), "warning\n"), "[0] warning\n");
  EXPECT_EQ(lines.Take(Event(0), "o\n\n"), "[0] two\n[0] \n");
}

TEST(RankLines, TheSetUpOfAHostHasItsName) {
  RankLines lines({}, true, true);
  EXPECT_EQ(lines.Take(Event(2, "setup"), "pip install\n"), "[algo-2] pip install\n");
}

TEST(RankLines, WithoutTagsLinesStayWhole) {
  RankLines lines({}, false, true);
  EXPECT_EQ(lines.Take(Event(0), "on"), "");
  EXPECT_EQ(lines.Take(Event(1), "two\n"), "two\n");
  EXPECT_EQ(lines.Take(Event(0), "e\n"), "one\n");
}

TEST(RankLines, ALineThatNeverEndedIsPrintedAtTheEnd) {
  RankLines lines({}, true, true);
  lines.Take(Event(1), "open");
  lines.Take(Event(0, "stderr"), "wrong");
  using Rest = std::vector<std::pair<bool, std::string>>;
  EXPECT_EQ(lines.Finish(), (Rest{{true, "[0] wrong\n"}, {false, "[1] open\n"}}));
  EXPECT_TRUE(lines.Finish().empty());
}

TEST(RankLines, LinesAreChosenBeforeTheyAreTagged) {
  RankLines lines({}, true, true, [](std::string_view line) {
    return line.find("loss") == 0 ? std::string(line) : std::string();
  });
  EXPECT_EQ(lines.Take(Event(1), "noise\nloss 1\n"), "[1] loss 1\n");
}

TEST(RankLines, RanksHaveColoursOnATerminalThatHasThem) {
  Terminal terminal;
  terminal.out_tty = terminal.color = true;
  RankLines lines(terminal, true, false);
  const auto zero = lines.Take(Event(0), "a\n");
  const auto one = lines.Take(Event(1), "a\n");
  EXPECT_NE(zero.find("\x1b["), std::string::npos);
  EXPECT_NE(zero.substr(0, 5), one.substr(0, 5));
}

TEST(LinesByTime, ArePrintedInTheOrderOfTheirTimes) {
  LinesByTime lines;
  EXPECT_EQ(lines.Add("2026-01-01T00:00:02.000Z", "late\n"), "");
  EXPECT_EQ(lines.Add("2026-01-01T00:00:01.000Z", "early\n"), "");
  EXPECT_EQ(lines.Add("2026-01-01T00:00:02.000Z", "also late\n"), "");
  EXPECT_EQ(lines.Finish(), "early\nlate\nalso late\n");
  EXPECT_EQ(lines.Finish(), "");
}

TEST(LinesByTime, HoldsNoMoreThanAFewMegabytes) {
  LinesByTime lines;
  std::string printed;
  for (int i = 0; i < 20; ++i) {
    printed += lines.Add("2026-01-01T00:00:" + std::to_string(10 + i) + ".000Z",
                         std::string(1 << 20, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(printed.size(), 12u << 20);
  EXPECT_EQ(printed.front(), 'a');
  EXPECT_EQ((printed + lines.Finish()).size(), 20u << 20);
}

}  // namespace
}  // namespace athanor
