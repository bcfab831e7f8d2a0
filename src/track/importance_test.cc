#include "track/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace athanor {
namespace {

// A hundred runs over lr (decides), drop (decides a little), seed (noise), batch (constant).
struct Table {
  std::vector<double> losses;
  std::vector<ParamColumn> columns{{"seed", {}}, {"batch", {}}, {"lr", {}}, {"opt", {}}};

  Table() {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> unit(0, 1);
    for (int i = 0; i < 200; ++i) {
      const double exponent = -5 + 4 * unit(random);
      const bool adam = unit(random) < 0.5;
      losses.push_back(std::abs(exponent + 3) + (adam ? 0 : 0.5) + 0.01 * unit(random));
      columns[0].values.push_back(std::to_string(static_cast<int>(1e6 * unit(random))));
      columns[1].values.push_back("32");
      columns[2].values.push_back(std::to_string(std::pow(10, exponent)));
      columns[3].values.push_back(adam ? "adam" : "sgd");
    }
  }
};

TEST(ParamWeights, WhatDecidesWeighsMostAndAConstantNothing) {
  const Table table;
  const auto weights = ParamWeights(table.losses, table.columns);
  ASSERT_EQ(weights.size(), 4u);
  EXPECT_EQ(weights[0].name, "lr");
  EXPECT_GT(weights[0].importance, 0.5);
  EXPECT_EQ(weights[1].name, "opt");
  EXPECT_EQ(weights[3].name, "batch");
  EXPECT_EQ(weights[3].importance, 0.0);
  double sum = 0;
  for (const auto& weight : weights) sum += weight.importance;
  EXPECT_NEAR(sum, 1.0, 1e-12);
}

TEST(ParamWeights, TheSameRunsGiveTheSameNumbers) {
  const Table table;
  const auto once = ParamWeights(table.losses, table.columns);
  const auto again = ParamWeights(table.losses, table.columns);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].importance, again[i].importance);
}

TEST(ParamWeights, RunsWithoutTheParamAndRunsThatFailedAreNoTrouble) {
  Table table;
  for (size_t i = 0; i < table.losses.size(); i += 5) table.columns[2].values[i].reset();
  for (size_t i = 0; i < table.losses.size(); i += 7) table.losses[i] = std::nan("");
  EXPECT_EQ(ParamWeights(table.losses, table.columns)[0].name, "lr");
}

TEST(ParamWeights, OfAFewRunsNothingIsSaid) {
  const auto weights = ParamWeights({1, 2, 3}, {{"lr", {"1", "2", "3"}}});
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].importance, 0.0);
  EXPECT_TRUE(ParamWeights({}, {}).empty());
}

}  // namespace
}  // namespace athanor
