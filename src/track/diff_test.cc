#include "track/diff.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

RunFacts Example() {
  RunFacts run;
  run.record.spec.command = {"python", "train.py"};
  run.record.spec.params = {{"lr", "0.1", Param::Kind::kNumber},
                            {"epochs", "5", Param::Kind::kNumber}};
  run.record.spec.data = {{"train", "/d", "file"}};
  run.source = BundleManifest{
      {{"train.py", BundleEntry::Kind::kFile, false, 10, std::string(64, 'a'), ""}}, 10};
  run.packages = "numpy==1.24\ntorch==1.13";
  run.metrics = {{"loss", 3, 0.5, 2, 0, 0.5, 1.0}};
  return run;
}

TEST(Differences, OfARunWithItselfThereAreNone) {
  EXPECT_TRUE(Differences({Example(), Example()}).empty());
}

// Exactly the four planted differences are found, each in its section.
TEST(Differences, FindsExactlyThePlantedOnes) {
  auto other = Example();
  other.record.spec.params[0].value = "0.3";
  other.source->entries[0].sha256 = std::string(64, 'b');
  other.packages = "numpy==1.26\ntorch==1.13";
  other.metrics[0].last = 0.25;
  auto rows = Differences({Example(), other});
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].section + "/" + rows[0].key, "params/lr");
  EXPECT_EQ(rows[0].values, (std::vector<std::string>{"0.1", "0.3"}));
  EXPECT_EQ(rows[1].section + "/" + rows[1].key, "source/train.py");
  EXPECT_EQ(rows[2].section + "/" + rows[2].key, "packages/numpy");
  EXPECT_EQ(rows[3].section + "/" + rows[3].key, "metrics/loss");
}

TEST(Differences, WhatOnlyOneRunHasStandsBesideNothing) {
  auto other = Example();
  other.record.spec.params.pop_back();
  auto rows = Differences({Example(), other, Example()});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].values, (std::vector<std::string>{"5", "", "5"}));
}

}  // namespace
}  // namespace athanor
