#include "watch/scalars/regex_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/text/format.h"

namespace athanor {
namespace {

std::string Shown(const std::vector<MetricPoint>& points) {
  std::string text;
  for (const MetricPoint& point : points) {
    if (!text.empty()) text += " ";
    text += fmt::format("{}={}@{}", point.name, point.value,
                        point.step ? std::to_string(*point.step) : "-");
  }
  return text;
}

std::string Points(std::vector<MetricSpec> specs, std::string_view log) {
  auto metrics = RegexMetrics::Make(specs);
  EXPECT_TRUE(metrics);
  std::vector<MetricPoint> points;
  metrics->Feed(Rank{0}, 1, log, points);
  metrics->Finish(points);
  return Shown(points);
}

TEST(RegexMetrics, FindsAllMatchesOfALineAndOfAllDefinitions) {
  EXPECT_EQ(Points({{"loss", "loss=([0-9.]+)", ""}, {"acc", "acc=(.*?);", ""}},
                   "loss=1 loss=2.5 acc=0.5; acc=nan;\nno\nacc=-inf; loss=3\n"),
            "loss=1@- loss=2.5@- acc=0.5@- acc=nan@- loss=3@- acc=-inf@-");
}

TEST(RegexMetrics, ReadsEveryKindOfNumberAndNothingElse) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(ParseMetricValue(" 0.41 "), 0.41);
  EXPECT_EQ(ParseMetricValue("1e-4"), 1e-4);
  EXPECT_EQ(ParseMetricValue("+3"), 3);
  EXPECT_EQ(ParseMetricValue("-.5"), -0.5);
  EXPECT_EQ(ParseMetricValue("97.3%"), 97.3);
  EXPECT_EQ(ParseMetricValue("inf"), inf);
  EXPECT_EQ(ParseMetricValue("-Infinity"), -inf);
  EXPECT_EQ(ParseMetricValue("1e999"), inf);
  EXPECT_EQ(ParseMetricValue("1e-999"), 0);
  EXPECT_TRUE(std::isnan(*ParseMetricValue("NaN")));
  for (const char* text :
       {"", "%", "x", "1,234.5", "0.5,", "1 2", "--1", "+-1", "0x10", "1e", "."}) {
    EXPECT_FALSE(ParseMetricValue(text)) << text;
  }
}

TEST(RegexMetrics, TakesTheStepNearestBeforeTheValue) {
  const MetricSpec spec{"loss", "loss=(\\S+)", "step=(\\d+)"};
  EXPECT_EQ(Points({spec}, "step=1 loss=5 step=2 loss=4\n"), "loss=5@1 loss=4@2");
  EXPECT_EQ(Points({spec}, "loss=5 step=7\nloss=3\n"), "loss=5@7 loss=3@-");
  EXPECT_EQ(Points({{"loss", "loss=(\\S+)", "epoch=(\\S+)"}}, "epoch=3.0 loss=5\nepoch=x loss=4\n"),
            "loss=5@3 loss=4@-");
}

TEST(RegexMetrics, ACarriageReturnEndsALine) {
  EXPECT_EQ(Points({{"p", "^p=(\\d+)$", ""}}, "p=1\rp=2\r\np=3"), "p=1@- p=2@- p=3@-");
}

TEST(RegexMetrics, RefusesExpressionsThatCannotWork) {
  for (const char* regex : {"(?=x)(1)", "loss=\\d+", "(", "(a)\\1"}) {
    const auto metrics = RegexMetrics::Make({{"loss", regex, ""}});
    ASSERT_FALSE(metrics) << regex;
    EXPECT_EQ(metrics.error().code, ErrorCode::kInvalid);
    EXPECT_NE(metrics.error().what.find("'loss'"), std::string::npos);
    EXPECT_FALSE(metrics.error().hint.empty());
    EXPECT_FALSE(RegexMetrics::Check({"loss", regex, ""}).ok());
  }
  EXPECT_FALSE(RegexMetrics::Check({"loss", "(1)", "step"}).ok());
  EXPECT_TRUE(RegexMetrics::Check({"loss", "(1)", "step=(\\d+)"}).ok());
}

TEST(RegexMetrics, TheNumbersOfPointsDoNotDependOnHowTheBytesWereCut) {
  std::string log;
  for (int i = 0; i < 200; ++i)
    log += fmt::format("step={} loss={} loss={}{}", i, i / 7.0, i, i % 3 ? "\n" : "\r");
  log += std::string(100'000, 'x') + " loss=1\nstep=200 loss=9";
  const std::vector<MetricSpec> specs = {{"loss", "loss=(\\S+)", "step=(\\d+)"}};
  auto whole = RegexMetrics::Make(specs);
  std::vector<MetricPoint> expected;
  whole->Feed(Rank{0}, 1, log, expected);
  whole->Finish(expected);
  ASSERT_EQ(expected.size(), 401u) << "a match behind 64 KiB of one line is not looked for";

  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    auto cut = RegexMetrics::Make(specs);
    std::vector<MetricPoint> points;
    for (size_t at = 0; at < log.size();) {
      const size_t length = 1 + random() % (seed < 10 ? 3 : 5'000);
      cut->Feed(Rank{0}, 1, std::string_view(log).substr(at, length), points);
      at += length;
    }
    cut->Finish(points);
    ASSERT_EQ(points.size(), expected.size()) << seed;
    for (size_t i = 0; i < points.size(); ++i) {
      ASSERT_EQ(points[i].seq, expected[i].seq) << seed;
      ASSERT_EQ(points[i].value, expected[i].value) << seed;
      ASSERT_EQ(points[i].step, expected[i].step) << seed;
      ASSERT_TRUE(i == 0 || points[i].seq > points[i - 1].seq) << seed;
    }
  }
}

TEST(RegexMetrics, AReaderThatStartsAgainAtALineStartMakesTheSameNumbers) {
  const std::vector<MetricSpec> specs = {{"loss", "loss=(\\S+)", ""}};
  auto first = RegexMetrics::Make(specs);
  std::vector<MetricPoint> points;
  first->Feed(Rank{2}, 1, "loss=1\nloss=2\nlos", points);
  const uint64_t resume = first->LineStart(Rank{2}, 1);
  EXPECT_EQ(resume, 14u);
  first->Feed(Rank{2}, 1, "s=3\n", points);

  auto again = RegexMetrics::Make(specs);
  std::vector<MetricPoint> later;
  again->StartAt(Rank{2}, 1, resume);
  again->Feed(Rank{2}, 1, "loss=3\n", later);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].seq, points[2].seq);
  EXPECT_EQ(later[0].rank, Rank{2});
}

TEST(RegexMetrics, RanksAndStreamsAreApart) {
  auto metrics = RegexMetrics::Make({{"loss", "loss=(\\d+)$", ""}});
  std::vector<MetricPoint> points;
  metrics->Feed(Rank{0}, 1, "loss=", points);
  metrics->Feed(Rank{1}, 1, "loss=2\n", points);
  metrics->Feed(Rank{0}, 2, "loss=3\n", points);
  metrics->Feed(Rank{0}, 1, "1\n", points);
  EXPECT_EQ(Shown(points), "loss=2@- loss=3@- loss=1@-");
  EXPECT_EQ(points[2].stream, 1u);
}

TEST(RegexMetrics, ALineGivesAtMostSixtyFourPoints) {
  std::string line;
  for (int i = 0; i < 100; ++i) line += "loss=1 ";
  auto metrics = RegexMetrics::Make({{"loss", "loss=(\\d)", ""}});
  std::vector<MetricPoint> points;
  metrics->Feed(Rank{0}, 1, line + "\nloss=2\n", points);
  ASSERT_EQ(points.size(), 65u);
  EXPECT_LT(points[63].seq, points[64].seq);
}

TEST(RegexMetrics, ADefinitionThatMatchedNothingWarnsOnceAfterAThousandLines) {
  auto metrics = RegexMetrics::Make({{"val:loss", "Loss=(\\d+)", ""}, {"n", "line (\\d+)", ""}});
  std::vector<MetricPoint> points;
  for (int i = 0; i < 999; ++i) metrics->Feed(Rank{0}, 1, fmt::format("line {}\n\n", i), points);
  EXPECT_EQ(metrics->lines(), 999u);
  EXPECT_TRUE(metrics->TakeWarnings().empty());
  metrics->Feed(Rank{0}, 2, "loss=0.5 \x1b[0m\n", points);
  const auto warnings = metrics->TakeWarnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].name, "val:loss");
  EXPECT_EQ(warnings[0].text, "matched none of 1000 lines");
  EXPECT_EQ(warnings[0].sample, "loss=0.5 \\x1b[0m");
  EXPECT_TRUE(metrics->TakeWarnings().empty());
}

TEST(RegexMetrics, AShortLogWarnsAtItsEndAndSaysWhatWasNoNumber) {
  auto metrics = RegexMetrics::Make({{"loss", "loss: (\\S+)", ""}});
  std::vector<MetricPoint> points;
  metrics->Feed(Rank{0}, 1, "loss: 1,234.5\nloss: x\n", points);
  EXPECT_TRUE(metrics->TakeWarnings().empty());
  metrics->Finish(points);
  const auto warnings = metrics->TakeWarnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].text,
            "matched 2 times in 2 lines, but group 1 was not a number: '1,234.5'");
}

TEST(RegexMetrics, AnExpressionThatMatchesNothingAtAllPlacesEnds) {
  EXPECT_EQ(Points({{"x", "(\\d*)", ""}}, "ab12cd3\n"), "x=12@- x=3@-");
}

TEST(RegexMetrics, GuessesOnlyWithoutDefinitionsAndSaysSo) {
  auto guessing = RegexMetrics::Make({});
  std::vector<MetricPoint> points;
  guessing->Feed(Rank{0}, 1, "epoch 3 loss=0.5\n", points);
  ASSERT_EQ(points.size(), 1u);
  EXPECT_TRUE(points[0].guessed);
  EXPECT_EQ(points[0].step, 3);
  guessing->Finish(points);
  EXPECT_TRUE(guessing->TakeWarnings().empty());

  points.clear();
  auto defined = RegexMetrics::Make({{"acc", "acc=(\\S+)", ""}});
  defined->Feed(Rank{0}, 1, "loss=0.5 acc=1\n", points);
  EXPECT_EQ(Shown(points), "acc=1@-");
  EXPECT_FALSE(points[0].guessed);

  points.clear();
  auto neither = RegexMetrics::Make({}, false);
  neither->Feed(Rank{0}, 1, "loss=0.5\n", points);
  EXPECT_TRUE(points.empty());
}

}  // namespace
}  // namespace athanor
