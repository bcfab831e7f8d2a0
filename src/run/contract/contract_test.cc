#include "run/contract/contract.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

AttemptPlan PlanOf(uint32_t host, uint32_t hosts, uint32_t processes) {
  AttemptPlan plan;
  plan.host = host;
  plan.spec.resources.nodes = hosts;
  plan.spec.resources.processes = processes;
  for (uint32_t i = 0; i < hosts; ++i) {
    plan.peers.push_back({HostNameOf(i), "10.213.0." + std::to_string(i + 2)});
  }
  return plan;
}

ContractPaths Paths() { return {"/out", "/opt/ml", {"algo-1", 7777, "eth0"}}; }

TEST(RankVariables, CountRanksOverAllHosts) {
  std::string seen;
  for (uint32_t host = 0; host < 2; ++host) {
    for (uint32_t local = 0; local < 3; ++local) {
      auto env = RankVariables(PlanOf(host, 2, 3), Paths(), local);
      seen += env["RANK"] + "/" + env["WORLD_SIZE"] + " " + env["LOCAL_RANK"] + "/" +
              env["LOCAL_WORLD_SIZE"] + " " + env["GROUP_RANK"] + "/" + env["GROUP_WORLD_SIZE"] +
              "; ";
      EXPECT_EQ(env["ATHANOR_RANK"], env["RANK"]);
      EXPECT_EQ(env["ATHANOR_WORLD_SIZE"], "6");
      EXPECT_EQ(env["ATHANOR_LOCAL_RANK"], env["LOCAL_RANK"]);
      EXPECT_EQ(env["MASTER_ADDR"], "algo-1");
      EXPECT_EQ(env["MASTER_PORT"], "7777");
      EXPECT_EQ(env["ATHANOR_SPOOL"], "/opt/ml/.athanor/spool/rank-" + env["LOCAL_RANK"]);
      EXPECT_EQ(env["ATHANOR_STACKS"], "/opt/ml/.athanor/stacks-" + env["LOCAL_RANK"]);
    }
  }
  EXPECT_EQ(seen, "0/6 0/3 0/2; 1/6 1/3 0/2; 2/6 2/3 0/2; 3/6 0/3 1/2; 4/6 1/3 1/2; 5/6 2/3 1/2; ");
}

TEST(RankVariables, ALoneRankHasThemToo) {
  AttemptPlan plan;
  auto env = ContractEnvironment(plan, {"/out", "/opt/ml", {"127.0.0.1", 4711, "lo"}}, 0);
  EXPECT_EQ(env["RANK"], "0");
  EXPECT_EQ(env["WORLD_SIZE"], "1");
  EXPECT_EQ(env["MASTER_ADDR"], "127.0.0.1");
  EXPECT_EQ(env["MASTER_PORT"], "4711");
  EXPECT_EQ(env["SM_MASTER_PORT"], "7777");
  EXPECT_EQ(env["SM_HOSTS"], R"(["algo-1"])");
  EXPECT_EQ(env["SM_NETWORK_INTERFACE_NAME"], "lo");
}

// Planted bug: the folder is made where it is missing, and is lost with the machine.
TEST(SharedCheckpoints, OnAnotherMachineNeedAFolderOfTheUserThatIsThere) {
  const TestDir dir;
  JobSpec spec;
  const auto code = [&](bool is_server_here) {
    const auto status = CheckSharedPlace(spec, is_server_here);
    if (status) return std::string();
    EXPECT_FALSE(status.error().hint.empty());
    return std::string(RowOf(status.error().code).name);
  };
  EXPECT_EQ(code(false), "") << "they travel";
  spec.checkpoints.store = "shared";
  EXPECT_EQ(code(true), "");
  EXPECT_EQ(code(false), "invalid") << "nothing is named";
  spec.checkpoint_dir = "/opt/ml/checkpoints/mine";
  EXPECT_EQ(code(false), "invalid") << "that is on the machine";
  spec.checkpoint_dir = dir / "mounted";
  EXPECT_EQ(code(false), "invalid") << "it is not mounted";
  EXPECT_FALSE(Exists(dir / "mounted"));
  EXPECT_EQ(code(true), "") << "made when it is missing, as always";
  ASSERT_TRUE(MakeDirs(dir / "mounted"));
  EXPECT_EQ(code(false), "");
}

TEST(RankVariables, WhatTheJobSetsItselfStays) {
  auto plan = PlanOf(0, 1, 1);
  plan.spec.env = {{"MASTER_PORT", "1234"}, {"RANK", "7"}};
  plan.spec.inherited = {{"WORLD_SIZE", "99"}};
  auto env = ContractEnvironment(plan, Paths(), 0);
  EXPECT_EQ(env["MASTER_PORT"], "1234");
  EXPECT_EQ(env["RANK"], "7");
  EXPECT_EQ(env["WORLD_SIZE"], "1");
  EXPECT_EQ(env["ATHANOR_RANK"], "0");
}

TEST(RankVariables, RanksShareOutGpusIfThereIsOneForEach) {
  const auto seen = [](std::vector<uint32_t> gpus, uint32_t processes) {
    auto plan = PlanOf(0, 1, processes);
    plan.placement.gpus = std::move(gpus);
    std::string all;
    for (uint32_t local = 0; local < processes; ++local) {
      all += RankVariables(plan, Paths(), local)["CUDA_VISIBLE_DEVICES"] + " ";
    }
    return all;
  };
  EXPECT_EQ(seen({3, 5}, 1), "3,5 ");
  EXPECT_EQ(seen({3, 5}, 2), "3 5 ");
  EXPECT_EQ(seen({0, 1, 2, 3, 4}, 2), "0,1 2,3,4 ");
  EXPECT_EQ(seen({3}, 2), "3 3 ");
  EXPECT_EQ(seen({}, 2), "  ");
}

TEST(Contract, NamesAllHostsInTheOrderOfTheirRanks) {
  TestDir dir;
  const auto plan = PlanOf(1, 11, 2);
  const ContractPaths paths{dir.path(), "/opt/ml", {"algo-1", 0, "eth0"}};
  ASSERT_TRUE(LayOutContract(plan, paths).ok());
  const auto config =
      nlohmann::json::parse(ReadFile(dir / "input/config/resourceconfig.json").value());
  EXPECT_EQ(config["current_host"], "algo-2");
  EXPECT_EQ(config["network_interface_name"], "eth0");
  ASSERT_EQ(config["hosts"].size(), 11u);
  EXPECT_EQ(config["hosts"][1], "algo-2");
  EXPECT_EQ(config["hosts"][9], "algo-10");
  EXPECT_EQ(config["instance_groups"][0]["hosts"], config["hosts"]);
  auto env = ContractEnvironment(plan, paths, 1);
  EXPECT_EQ(env["SM_CURRENT_HOST"], "algo-2");
  EXPECT_EQ(env["SM_CURRENT_HOST_RANK"], "1");
  EXPECT_EQ(env["SM_HOST_COUNT"], "11");
  EXPECT_EQ(env["SM_MASTER_ADDR"], "algo-1");
  EXPECT_EQ(env["SM_MASTER_PORT"], "7777");
  EXPECT_EQ(env["SM_HOSTS"], config["hosts"].dump());
  const auto all = nlohmann::json::parse(env["SM_TRAINING_ENV"]);
  EXPECT_EQ(all["is_master"], false);
  EXPECT_EQ(all["master_hostname"], "algo-1");
  EXPECT_EQ(all["hosts"], config["hosts"]);
}

}  // namespace
}  // namespace athanor
