#include "run/checkpoint/save_signs.h"

#include <gtest/gtest.h>

#include "run/checkpoint/interval.h"

namespace athanor {
namespace {

TEST(StepInName, FindsTheStepInTheNamesFrameworksGive) {
  const std::pair<const char*, int64_t> cases[] = {
      {"step_120.pt", 120},
      {"ckpt-120", 120},
      {"ckpt-120.index", 120},
      {"model.ckpt-7000.data-00000-of-00001", 7000},
      {"checkpoint-500/pytorch_model.bin", 500},
      {"checkpoint-500/rng_state_0.pth", 500},
      {"epoch=3-step=1200.ckpt", 1200},
      {"global_step1000/mp_rank_00_model_states.pt", 1000},
      {"iter_0000100/mp_rank_00/model_optim_rng.pt", 100},
      {"model_120.pt", 120},
      {"120.pt", 120},
      {"0/default/state", 0},
      {"Step-8.pt", 8},
  };
  for (const auto& [name, step] : cases) EXPECT_EQ(StepInName(name), step) << name;
}

TEST(StepInName, TakesNoNumberThatMeansSomethingElse) {
  for (const char* name :
       {"epoch3.pt", "epoch_3/model.pt", "resnet50.pt", "model-00001-of-00003.safetensors",
        "mp_rank_00.pt", "model_v2.pt", "last.pt", "model_2026-05-01.pt", "checkpoint_3_5000.pt",
        "lr0.001.pt", "model_1.5.pt", "fold_2/best.pt", "99999999999999999999.pt", ""}) {
    EXPECT_EQ(StepInName(name), std::nullopt) << name;
  }
}

TEST(SaveCost, IsTheMedianOfTheLastFew) {
  SaveCost cost;
  EXPECT_EQ(cost.ms(), 0);
  cost.Add(0);
  cost.Add(-5);
  EXPECT_EQ(cost.ms(), 0);
  for (const int64_t ms : {100, 110, 9'000, 90, 105}) cost.Add(ms);
  EXPECT_EQ(cost.ms(), 105);
  for (int i = 0; i < 7; ++i) cost.Add(400);  // the model has grown
  EXPECT_EQ(cost.ms(), 400);
  EXPECT_EQ(cost.measured(), 12u);
}

TEST(Interval, IsDalysWhereItHolds) {
  // C = 2 s, M = 2 h: sqrt(2 * 2 * 7200) - 2 = 167.7 s.
  const auto advice = AdviseInterval(2'000, 7'200'000, "measured: 3 in 6 h");
  EXPECT_NEAR(static_cast<double>(advice.every_ms), 167'706, 1);
  EXPECT_EQ(advice.source, "measured: 3 in 6 h");
  EXPECT_EQ(advice.save_ms, 2'000);
  EXPECT_EQ(advice.mtbf_ms, 7'200'000);
}

TEST(Interval, NothingMeasuredGivesNoAdvice) {
  EXPECT_EQ(AdviseInterval(0, 1'000, "").every_ms, 0);
  EXPECT_EQ(AdviseInterval(1'000, 0, "").every_ms, 0);
  EXPECT_EQ(AdviseInterval(-1, -1, "").every_ms, 0);
  EXPECT_EQ(ExpectedCost(AdviseInterval(0, 1'000, "")), 0);
}

TEST(Interval, SavingNeverTakesMuchMoreThanATenthUnlessTheMachineIsLostAllTheTime) {
  EXPECT_EQ(AdviseInterval(1'000, 30'000, "").every_ms, 10'000);  // Daly: 6.7 s
  // Lost every 20 s, a save takes 3 s: ten saves' length would be beyond the loss.
  EXPECT_EQ(AdviseInterval(3'000, 20'000, "").every_ms, 10'000);
  EXPECT_EQ(AdviseInterval(15'000, 20'000, "").every_ms, 20'000);
}

TEST(Interval, StaysBetweenASecondAndAnHour) {
  EXPECT_EQ(AdviseInterval(1, 60'000, "").every_ms, 1'000);
  EXPECT_EQ(AdviseInterval(60'000, 2'592'000'000, "").every_ms, 3'600'000);
  EXPECT_EQ(AdviseInterval(600'000, 2'592'000'000, "").every_ms, 30'000'000);
}

TEST(Interval, NoNeighbourIsExpectedToCostLessWhereNothingIsClamped) {
  for (const int64_t save : {200, 2'000, 20'000}) {
    auto advice = AdviseInterval(save, 10'800'000, "");
    const double best = ExpectedCost(advice);
    EXPECT_GT(best, 0);
    EXPECT_LT(best, 0.1);
    const int64_t every = advice.every_ms;
    for (const double factor : {0.5, 0.8, 1.25, 2.0}) {
      advice.every_ms = static_cast<int64_t>(static_cast<double>(every) * factor);
      EXPECT_GT(ExpectedCost(advice), best) << save << " " << factor;
    }
  }
}

}  // namespace
}  // namespace athanor
