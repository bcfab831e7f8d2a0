#include "place/need.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr uint64_t kGib = 1ull << 30;

Inventory Machine(uint32_t cpu_millis = 2'000, uint64_t memory = 24 * kGib, uint32_t gpus = 0) {
  Inventory inventory;
  inventory.cpu_millis = cpu_millis;
  inventory.memory_bytes = memory;
  inventory.gpus = gpus;
  return inventory;
}

Result<Need> Ask(const ResourceSpec& spec, const Inventory& inventory, bool simulate = false) {
  return Resolve(spec, Catalogue::Builtin(), inventory, simulate);
}

TEST(Need, OfAJobWithoutAmountsIsOneCpuAndNoMemoryLimit) {
  const auto need = Ask({}, Machine());
  ASSERT_TRUE(need);
  EXPECT_EQ(*need, (Need{1'000, 0, 0, false}));
}

TEST(Need, NeverExceedsAMachineSmallerThanTheDefault) {
  EXPECT_EQ(Ask({}, Machine(500))->cpu_millis, 500u);
}

TEST(Need, KeepsTheAmountsAskedForAlsoFractions) {
  ResourceSpec spec;
  spec.cpu_millis = 500;
  spec.memory_bytes = 3 * kGib;
  spec.gpus = 1;
  EXPECT_EQ(*Ask(spec, Machine(2'000, 24 * kGib, 1)), (Need{500, 3 * kGib, 1, false}));
}

TEST(Need, OfAGangIsThatOfEachNodeAndAllOfThemMustFit) {
  ResourceSpec spec;
  spec.nodes = 3;
  spec.cpu_millis = 1'000;
  EXPECT_EQ(Ask(spec, Machine(3'000))->nodes, 3u);
  auto refused = Ask(spec, Machine(2'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().what, "the job asks for 3 nodes with 1 CPU each");
  EXPECT_EQ(refused.error().why, "this machine can give 2 CPUs, 24 GiB and no GPUs");
  EXPECT_EQ(refused.error().hint, "ask for fewer: --nodes 2\nask for less: --cpus 0.666");
  spec = {};
  spec.nodes = 2;
  spec.memory_bytes = ~0ull;
  EXPECT_EQ(Ask(spec, Machine()).error().what.substr(0, 35), "the job asks for 2 nodes with 17179");
  spec = {};
  spec.nodes = 2;
  spec.type = "ml.m5.large";
  EXPECT_EQ(Ask(spec, Machine(4'000))->nodes, 2u);
  refused = Ask(spec, Machine(2'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what.substr(0, 24), "2 nodes of ml.m5.large, ");
  EXPECT_EQ(Ask(spec, Machine(2'000), true)->cpu_millis, 1'000u);
  EXPECT_TRUE(Ask(spec, Machine(2'000), true)->simulated);
}

TEST(Need, WithoutAmountsTheNodesAndRanksShareTheMachine) {
  ResourceSpec spec;
  spec.processes = 4;
  EXPECT_EQ(Ask(spec, Machine(8'000))->cpu_millis, 4'000u);
  EXPECT_EQ(Ask(spec, Machine(2'000))->cpu_millis, 2'000u);  // more ranks than cores
  spec.nodes = 4;
  EXPECT_EQ(Ask(spec, Machine(2'000))->cpu_millis, 500u);
  spec.nodes = 1'000'000;
  const auto refused = Ask(spec, Machine(2'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what, "the job asks for 1000000 nodes, each with at least 0.1 CPUs");
  EXPECT_EQ(refused.error().hint, "ask for fewer: --nodes 20\n");
}

TEST(Need, OfAJobThatSaysNothingOfGpusIsWhatOthersLeave) {
  const Inventory machine = Machine(2'000, 24 * kGib, 2);
  EXPECT_EQ(*Ask({}, machine), (Need{1'000, 0, 0, false, true}));
  EXPECT_FALSE(Ask({}, Machine())->auto_gpus);  // there are none
  ResourceSpec spec;
  spec.no_gpus = true;
  EXPECT_FALSE(Ask(spec, machine)->auto_gpus);
  spec.no_gpus = false;
  spec.type = "ml.m5.large";  // has none, as on SageMaker
  EXPECT_FALSE(Ask(spec, machine)->auto_gpus);
}

TEST(Need, OfATypeIsItsAmounts) {
  ResourceSpec spec;
  spec.type = "ml.m5.large";
  EXPECT_EQ(*Ask(spec, Machine()), (Need{2'000, 8 * kGib, 0, false}));
}

TEST(Need, ATypeThatIsTooLargeIsRefusedWithTheLargestThatFits) {
  ResourceSpec spec;
  spec.type = "ml.g4dn.xlarge";
  const auto need = Ask(spec, Machine());
  ASSERT_FALSE(need);
  EXPECT_EQ(need.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(need.error().what,
            "ml.g4dn.xlarge has 4 CPUs, 16 GiB and 1 GPU: more than this machine");
  EXPECT_EQ(need.error().why, "this machine can give 2 CPUs, 24 GiB and no GPUs");
  EXPECT_NE(need.error().hint.find("--type ml.r5.large"), std::string::npos) << need.error().hint;
}

TEST(Need, ATypeThatIsTooLargeIsClippedAndMarkedWhenSimulating) {
  ResourceSpec spec;
  spec.type = "ml.p4d.24xlarge";
  EXPECT_EQ(*Ask(spec, Machine(), true), (Need{2'000, 24 * kGib, 0, true}));
  spec.type = "ml.m5.large";  // one that fits is real
  EXPECT_FALSE(Ask(spec, Machine(), true)->simulated);
}

TEST(Need, AmountsThatAreTooLargeAreRefusedEvenWhenSimulating) {
  ResourceSpec cpus;
  cpus.cpu_millis = 2'001;
  ResourceSpec memory;
  memory.memory_bytes = 24 * kGib + 1;
  ResourceSpec gpus;
  gpus.gpus = 1;
  for (const ResourceSpec& spec : {cpus, memory, gpus}) {
    const auto need = Ask(spec, Machine(), true);
    ASSERT_FALSE(need);
    EXPECT_EQ(need.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(need.error().hint.empty());
    EXPECT_EQ(need.error().why, "this machine can give 2 CPUs, 24 GiB and no GPUs");
  }
}

TEST(Need, ATypeAndAmountsTogetherAreRefused) {
  ResourceSpec spec;
  spec.type = "ml.m5.large";
  spec.cpu_millis = 1'000;
  EXPECT_EQ(Ask(spec, Machine()).error().code, ErrorCode::kInvalid);
}

TEST(Need, AnUnknownTypeIsNotFound) {
  ResourceSpec spec;
  spec.type = "ml.m5.lareg";
  const auto need = Ask(spec, Machine(), true);
  ASSERT_FALSE(need);
  EXPECT_EQ(need.error().code, ErrorCode::kNotFound);
  EXPECT_NE(need.error().hint.find("ml.m5.large"), std::string::npos);
}

TEST(Need, AmountsReadWell) {
  EXPECT_EQ(CpuText(1'000), "1 CPU");
  EXPECT_EQ(CpuText(500), "0.5 CPUs");
  EXPECT_EQ(CpuText(0), "0 CPUs");
  EXPECT_EQ(CpuText(20'000), "20 CPUs");
  EXPECT_EQ(MemoryText(15 * kGib / 2), "7.5 GiB");
  EXPECT_EQ(MemoryText(512ull << 20), "512 MiB");
  EXPECT_EQ(MemoryText(0), "0 bytes");
  EXPECT_EQ(GpuText(1), "1 GPU");
}

}  // namespace
}  // namespace athanor
