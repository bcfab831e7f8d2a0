#include <gtest/gtest.h>

#include <map>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "cli/screen/preflight_report.h"

namespace athanor {
namespace {

PreflightFacts Well() {
  PreflightFacts facts;
  facts.steps = 12;
  facts.metrics = {"loss", "acc"};
  facts.saved = CheckpointInfo{};
  facts.saved->step = 10;
  facts.interrupted = true;
  facts.resumed_from = "1-1";
  facts.steps_after = 14;
  facts.memory_peak = 1 << 30;
  facts.memory_limit = 4ull << 30;
  facts.limit_of = "ml.m5.large";
  return facts;
}

std::map<std::string, Verdict> Verdicts(const JobSpec& spec, const PreflightFacts& facts) {
  std::map<std::string, Verdict> all;
  for (const auto& check : JudgePreflight(spec, facts)) {
    EXPECT_EQ(check.verdict == Verdict::kOk, check.hint.empty()) << check.name;
    all[check.name] = check.verdict;
  }
  return all;
}

TEST(Preflight, PassesWhatIsWell) {
  for (const auto& [name, verdict] : Verdicts({}, Well())) EXPECT_EQ(verdict, Verdict::kOk) << name;
}

TEST(Preflight, ARunThatFailedIsNotJudgedFurther) {
  auto facts = Well();
  facts.failure = Cause{"python_exception", "KeyError: 'x'", "", ""};
  EXPECT_EQ(Verdicts({}, facts), (std::map<std::string, Verdict>{{"runs", Verdict::kFail}}));
}

TEST(Preflight, ARegexThatNeverMatchedFails) {
  JobSpec spec;
  spec.metrics = {{"loss", "loss=(.*)", ""}, {"f1", "f1=(.*)", ""}};
  EXPECT_EQ(Verdicts(spec, Well())["metrics"], Verdict::kFail);
  spec.metrics.pop_back();
  EXPECT_EQ(Verdicts(spec, Well())["metrics"], Verdict::kOk);
  auto none = Well();
  none.metrics.clear();
  EXPECT_EQ(Verdicts({}, none)["metrics"], Verdict::kWarn);
}

TEST(Preflight, ARuleOnAMetricThatNeverComesIsNamed) {
  JobSpec spec;
  spec.rules.resize(1);
  spec.rules[0].rule = "nan";
  spec.rules[0].metric = "val_*";
  EXPECT_EQ(Verdicts(spec, Well())["rules"], Verdict::kWarn);
  spec.rules[0].metric = "lo*";
  EXPECT_EQ(Verdicts(spec, Well())["rules"], Verdict::kOk);
}

TEST(Preflight, NoCheckpointFailsOnlyAJobThatMayBeInterrupted) {
  auto facts = Well();
  facts.saved.reset();
  EXPECT_EQ(Verdicts({}, facts)["checkpoint"], Verdict::kWarn);
  JobSpec spot;
  spot.resources.spot.use = true;
  EXPECT_EQ(Verdicts(spot, facts)["checkpoint"], Verdict::kFail);
}

TEST(Preflight, ACheckpointThatCannotBeGoneOnFromFails) {
  auto facts = Well();
  facts.resume_failure = Cause{"python_exception", "RuntimeError: size mismatch", "", ""};
  EXPECT_EQ(Verdicts({}, facts)["checkpoint"], Verdict::kFail);
  facts = Well();
  facts.resumed_from.clear();
  EXPECT_EQ(Verdicts({}, facts)["checkpoint"], Verdict::kFail);
}

TEST(Preflight, MemoryIsComparedWithTheRealMachine) {
  auto facts = Well();
  facts.memory_peak = facts.memory_limit;
  EXPECT_EQ(Verdicts({}, facts)["memory"], Verdict::kFail);
  facts.memory_peak = facts.memory_limit / 10 * 9;
  EXPECT_EQ(Verdicts({}, facts)["memory"], Verdict::kWarn);
  facts.memory_limit = 0;
  EXPECT_EQ(Verdicts({}, facts)["memory"], Verdict::kOk);
}

TEST(Estimate, TakesSetUpOnceAndStepsAtTheirSpeed) {
  auto facts = Well();
  facts.setup_ms = 1'000;
  facts.total = 1'000;
  facts.price.micros_per_hour = 3'600'000;
  // 2 s of loading, then ten steps a second.
  facts.progress = {{2'100, 1}, {3'100, 11}, {4'100, 21}};
  const auto estimate = EstimateRun(facts);
  EXPECT_EQ(estimate.why_not, "");
  EXPECT_DOUBLE_EQ(estimate.steps_per_second, 10);
  EXPECT_EQ(estimate.low_ms, 1'000 + 2'000 + 100'000);
  EXPECT_EQ(estimate.high_ms, estimate.low_ms);
  EXPECT_EQ(estimate.low_micros, 103'000);
}

TEST(Estimate, EachNodeCosts) {
  auto facts = Well();
  facts.total = 1'000;
  facts.price.micros_per_hour = 3'600'000;
  facts.progress = {{0, 0}, {1'000, 10}};
  const auto one = EstimateRun(facts);
  facts.nodes = 4;
  const auto four = EstimateRun(facts);
  EXPECT_EQ(four.low_ms, one.low_ms);
  EXPECT_EQ(four.low_micros, 4 * one.low_micros);
}

TEST(Estimate, ASampleMakesARange) {
  auto facts = Well();
  facts.total = 100;
  facts.progress = {{0, 0}, {1'000, 10}};
  facts.channels = {{"train", {1, 25, 4, 100}}, {"val", {2, 50, 2, 50}}};
  const auto estimate = EstimateRun(facts);
  EXPECT_EQ(estimate.low_ms, 10'000);
  EXPECT_EQ(estimate.high_ms, 40'000);
}

TEST(Estimate, SaysWhyThereIsNone) {
  auto facts = Well();
  facts.progress = {{0, 0}, {1'000, 10}};
  EXPECT_NE(EstimateRun(facts).why_not.find("athanor.progress"), std::string::npos);
  facts.total = 100;
  facts.progress = {{0, 0}, {1'000, 2}};
  EXPECT_NE(EstimateRun(facts).why_not, "");
  facts.progress = {{0, 5}};
  EXPECT_NE(EstimateRun(facts).why_not, "");
}

TEST(Sample, TakesFromEveryFolderInTurnAndCutsNone) {
  TestDir dir;
  for (const char* name : {"a/1", "a/2", "a/3", "b/1", "b/2", "c/d/1", "top"}) {
    ASSERT_TRUE(MakeDirs(DirName(dir / ("from/" + std::string(name)))));
    ASSERT_TRUE(ReplaceFile(dir / ("from/" + std::string(name)), "0123456789"));
  }
  auto sample = TakeSample(dir / "from", dir / "to", {5, 1'000});
  ASSERT_TRUE(sample) << sample.error().what;
  EXPECT_EQ(sample->files, 5u);
  EXPECT_EQ(sample->all_files, 7u);
  EXPECT_DOUBLE_EQ(sample->fraction(), 5.0 / 7.0);
  for (const char* name : {"to/top", "to/a/1", "to/b/1", "to/c/d/1"})
    EXPECT_TRUE(Exists(dir / name));
  EXPECT_FALSE(Exists(dir / "to/a/3"));
  // The byte limit is passed by one file, not met by half of one.
  auto small = TakeSample(dir / "from", dir / "small", {64, 15});
  ASSERT_TRUE(small);
  EXPECT_EQ(small->files, 2u);
  EXPECT_EQ(ReadFile(dir / "small/top").value_or(""), "0123456789");
}

TEST(Sample, TakesAtLeastOneFileAndASingleOneWhole) {
  TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "from"));
  ASSERT_TRUE(ReplaceFile(dir / "from/large", std::string(1'000, 'x')));
  auto sample = TakeSample(dir / "from", dir / "to", {64, 1});
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->files, 1u);
  EXPECT_DOUBLE_EQ(sample->fraction(), 1.0);
  ASSERT_TRUE(TakeSample(dir / "from/large", dir / "one", {}));
  EXPECT_EQ(ReadFile(dir / "one").value_or("").size(), 1'000u);
  EXPECT_FALSE(TakeSample(dir / "absent", dir / "no", {}));
}

}  // namespace
}  // namespace athanor
