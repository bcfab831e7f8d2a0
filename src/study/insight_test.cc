#include "study/insight.h"

#include <gtest/gtest.h>

#include "base/text/format.h"

namespace athanor {
namespace {

// Trials over a grid; the value depends on x alone and is best at its low edge.
StudyRecord Sample() {
  StudyRecord record;
  record.spec.name = "digits";
  record.spec.metric = "loss";
  record.spec.strategy = tune::Strategy::kRandom;
  record.spec.space = R"([{"name":"x","type":"float","low":0,"high":1},
    {"name":"y","type":"float","low":0,"high":1},{"name":"c","type":"const","value":3}])";
  for (int i = 0; i < 60; ++i) {
    TrialRecord trial;
    trial.number = i + 1;
    trial.state = TrialState::kDone;
    const double x = (i * 37 % 60) / 59.0, y = (i * 23 % 60) / 59.0;
    trial.params = fmt::format(R"({{"x":{},"y":{},"c":3}})", x, y);
    trial.value = x * 10;
    record.trials.push_back(trial);
  }
  return record;
}

TEST(Insight, WhatDecidesTheValueMattersAndAConstantDoesNot) {
  const auto rows = ParameterImportance(Sample());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].parameter, "x");
  EXPECT_GT(rows[0].share, 0.6);
  EXPECT_EQ(rows[2].parameter, "c");
  EXPECT_EQ(rows[2].share, 0);
}

TEST(Insight, FewTrialsSayNothing) {
  auto record = Sample();
  record.trials.resize(5);
  EXPECT_TRUE(ParameterImportance(record).empty());
  EXPECT_TRUE(HintsFor(record).empty());
}

TEST(Insight, ABestAtTheEdgeOfItsRangeIsSaid) {
  const auto hints = HintsFor(Sample());
  ASSERT_FALSE(hints.empty());
  EXPECT_NE(hints[0].text.find("x = 0, at the low edge"), std::string::npos) << hints[0].text;
  EXPECT_NE(hints[0].next.find("--range x=-"), std::string::npos) << hints[0].next;
}

TEST(Insight, ConstantValuesAreSaidAndNeverCrash) {
  auto record = Sample();
  for (auto& trial : record.trials) trial.value = 1;
  bool said = false;
  for (const auto& hint : HintsFor(record))
    said |= hint.text.find("same value") != std::string::npos;
  EXPECT_TRUE(said);
  EXPECT_EQ(ParameterImportance(record).size(), 3u);
}

}  // namespace
}  // namespace athanor
