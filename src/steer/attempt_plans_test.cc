#include "steer/attempt_plans.h"

#include <gtest/gtest.h>

#include <optional>

#include "record/jobs/loss_store.h"
#include "steer/attempt_tokens.h"
#include "steer/engine_testing.h"
#include "steer/loss_rates.h"

namespace athanor {
namespace {

constexpr char kKey[] = "the key that signs tokens";

class AttemptPlansTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    losses_.emplace(*database_);
    rates_.emplace(*losses_, pool_);
    plans_.emplace(AttemptPlans::Parts{kKey, false, *rates_,
                                       [this](AttemptPlan& plan) -> Status {
                                         if (no_way_) return Fail(*no_way_);
                                         plan.server = "unix:/here";
                                         return Ok();
                                       },
                                       [](const JobSpec& spec, AttemptPlan& plan) {
                                         plan.config_files["asked.json"] = spec.request;
                                       }});
  }
  std::vector<AttemptPlan> HostsOf(const JobRecord& record) {
    return plans_->Of(record).value().hosts;
  }

  std::optional<LossStore> losses_;
  std::optional<LossRates> rates_;
  std::optional<Error> no_way_;
  std::optional<AttemptPlans> plans_;
};

TEST_F(AttemptPlansTest, EachHostKnowsItselfAndTheOthers) {
  const auto hosts = HostsOf(Record(Submit("gang", 1, 0, 3)));
  ASSERT_EQ(hosts.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(hosts[i].host, i);
    EXPECT_EQ(hosts[i].attempt, hosts[0].attempt);
    ASSERT_EQ(hosts[i].peers.size(), 3u);
    EXPECT_EQ(hosts[i].peers[i].name, "algo-" + std::to_string(i + 1));
    EXPECT_EQ(hosts[i].master_port, hosts[0].master_port);
    EXPECT_EQ(hosts[i].server, "unix:/here");
    const auto whose = ReadIngestToken(kKey, hosts[i].token);
    ASSERT_TRUE(whose);
    EXPECT_EQ(whose->host, i);
  }
}

// Planted bug: choose the port by chance. A launch that is repeated would tell hosts of one attempt
// to meet at two ports.
TEST_F(AttemptPlansTest, TheSameRecordGivesTheSamePlan) {
  const auto job = Submit("gang", 1, 0, 2);
  const auto first = HostsOf(Record(job)), second = HostsOf(Record(job));
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(EncodePlan(first[i]), EncodePlan(second[i]));
  }
}

TEST_F(AttemptPlansTest, AgentsGetWhatADoorAddedButNotItsRequest) {
  auto record = Record(Submit("one", 1));
  record.spec.request = "{\"as\": \"it came\"}";
  const auto host = HostsOf(record).front();
  EXPECT_EQ(host.config_files.at("asked.json"), record.spec.request);
  EXPECT_TRUE(host.spec.request.empty());
}

TEST_F(AttemptPlansTest, AScriptLogsToItsJobUnlessItNamesAnotherServer) {
  auto record = Record(Submit("one", 1));
  auto env = HostsOf(record).front().spec.env;
  EXPECT_EQ(env.at("MLFLOW_RUN_ID"), record.id.value.ToHex());
  EXPECT_EQ(ReadRunToken(kKey, env.at("MLFLOW_TRACKING_TOKEN")), record.current()->id);
  record.spec.env["MLFLOW_TRACKING_URI"] = "http://elsewhere:5000";
  env = HostsOf(record).front().spec.env;
  EXPECT_FALSE(env.contains("MLFLOW_RUN_ID"));
  EXPECT_FALSE(env.contains("MLFLOW_TRACKING_TOKEN"));
}

TEST_F(AttemptPlansTest, NoPlanWithoutAWayToTheServer) {
  no_way_ = Error{ErrorCode::kInvalid, "no agents are heard", "set agents.listen"};
  const auto plan = plans_->Of(Record(Submit("one", 1)));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().what, "no agents are heard");
}

}  // namespace
}  // namespace athanor
