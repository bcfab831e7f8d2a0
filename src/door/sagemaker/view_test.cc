#include "door/sagemaker/view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "door/sagemaker/search.h"

namespace athanor::sagemaker {
namespace {

StoredEvent At(int64_t ms, std::string name, JobState state, Cause cause = {}) {
  StoredEvent event;
  event.at = WallTime{ms};
  event.name = std::move(name);
  event.state = state;
  event.cause = std::move(cause);
  return event;
}

JobRecord Ended(JobState state, Cause cause) {
  JobRecord record;
  record.id = JobId::New();
  record.spec.name = "job-1";
  record.spec.output_to = "s3://b/out";
  record.spec.request =
      R"({"TrainingJobName":"job-1","OutputDataConfig":{"S3OutputPath":"s3://b/out"},
    "Odd":{"kept":[1]},"Tags":[{"Key":"a","Value":"b"}],
    "DebugRuleConfigurations":[{"RuleConfigurationName":"LossNotDecreasing"}]})";
  record.state = state;
  record.cause = std::move(cause);
  record.created = WallTime{1'000};
  record.ended = record.updated = WallTime{9'000};
  Attempt attempt;
  attempt.started = WallTime{2'000};
  attempt.exited = WallTime{8'500};
  attempt.held_ms = 7'000;
  attempt.exit = ExitInfo{};
  attempt.exit->code = state == JobState::kFailed ? 3 : 0;
  record.attempts.push_back(attempt);
  return record;
}

Json View(const JobRecord& record, const std::vector<StoredEvent>& events = {}) {
  return DescribeView({record, events, {}, "eu-west-1", nullptr});
}

TEST(DescribeView, GivesBackWhatWasAskedAndWhatClientsIndex) {
  const auto view = View(Ended(JobState::kCompleted, {"completed", "", "", ""}));
  EXPECT_EQ(view["Odd"]["kept"][0], 1);
  EXPECT_EQ(view["OutputDataConfig"]["KmsKeyId"], "");
  EXPECT_EQ(view["OutputDataConfig"]["S3OutputPath"], "s3://b/out");
  EXPECT_EQ(view["StoppingCondition"]["MaxRuntimeInSeconds"], 86'400);
  EXPECT_EQ(view["EnableNetworkIsolation"], false);
  EXPECT_FALSE(view.contains("Tags"));
  EXPECT_EQ(view["TrainingJobArn"], "arn:aws:sagemaker:eu-west-1:000000000000:training-job/job-1");
  EXPECT_EQ(view["ModelArtifacts"]["S3ModelArtifacts"], "s3://b/out/job-1/output/model.tar.gz");
  EXPECT_EQ(view["TrainingTimeInSeconds"], 7);
  EXPECT_EQ(view["BillableTimeInSeconds"], 7);
}

TEST(DescribeView, GivesBackHowManyInstancesThereWere) {
  auto record = Ended(JobState::kCompleted, {"completed", "", "", ""});
  EXPECT_EQ(View(record)["ResourceConfig"]["InstanceCount"], 1);
  record.spec.resources.nodes = 3;
  EXPECT_EQ(View(record)["ResourceConfig"]["InstanceCount"], 3);
  record.spec.request.clear();  // of another door
  EXPECT_EQ(View(record)["ResourceConfig"]["InstanceCount"], 3);
}

TEST(DescribeView, RulesAreNeverSaidToHaveFoundNothing) {
  const auto view = View(Ended(JobState::kCompleted, {"completed", "", "", ""}));
  const auto& status = view["DebugRuleEvaluationStatuses"][0];
  EXPECT_EQ(status["RuleConfigurationName"], "LossNotDecreasing");
  EXPECT_EQ(status["RuleEvaluationStatus"], "Stopped");
  EXPECT_NE(status["StatusDetails"].get<std::string>().find("not evaluated"), std::string::npos);
}

TEST(DescribeView, TransitionsFollowTheEvents) {
  auto record = Ended(JobState::kCompleted, {"completed", "", "", ""});
  record.spec.notes = {"channel train: FastFile is not available yet"};
  const auto view = View(
      record,
      {At(1'000, "submitted", JobState::kQueued), At(1'100, "placed", JobState::kPlacing),
       At(1'200, "agent_up", JobState::kPreparing), At(2'000, "script_started", JobState::kRunning),
       At(3'000, "checkpoint", JobState::kRunning), At(8'500, "script_ended", JobState::kUploading),
       At(9'000, "uploaded", JobState::kCompleted)});
  std::vector<std::string> statuses;
  for (const auto& t : view["SecondaryStatusTransitions"]) statuses.push_back(t["Status"]);
  EXPECT_EQ(statuses, (std::vector<std::string>{"Starting", "Starting", "Downloading", "Training",
                                                "Uploading", "Completed"}));
  EXPECT_NE(view["SecondaryStatusTransitions"][0]["StatusMessage"].get<std::string>().find(
                "FastFile is not available yet"),
            std::string::npos);
  EXPECT_EQ(view["SecondaryStatusTransitions"][3]["EndTime"], 8.5);
}

TEST(DescribeView, TheTimeLimitIsAKindOfStop) {
  const auto view = View(Ended(JobState::kStopped, {"time_limit", "too long", "", ""}));
  EXPECT_EQ(view["TrainingJobStatus"], "Stopped");
  EXPECT_EQ(view["SecondaryStatus"], "MaxRuntimeExceeded");
  EXPECT_FALSE(view.contains("FailureReason"));
}

TEST(DescribeView, AFailureSaysWhoseAndIsShort) {
  auto record = Ended(JobState::kFailed, {"nonzero_exit", "exit status 3", "", ""});
  EXPECT_EQ(FailureReason(record), "AlgorithmError: exit status 3, exit code: 3");
  record.cause.detail = std::string(2'000, 'x');
  EXPECT_EQ(FailureReason(record).size(), 1024u);
  record.attempts.back().exit.reset();
  record.cause = {"data_failed", "no object lies below s3://b/d", "", ""};
  EXPECT_EQ(FailureReason(record).find("ClientError: "), 0u);
}

TEST(Search, FiltersByPathTagAndMetric) {
  Json view = {{"TrainingJobName", "job-1"},
               {"HyperParameters", {{"lr", "0.1"}}},
               {"Tags", {{{"Key", "team"}, {"Value", "vision"}}}},
               {"FinalMetricDataList", {{{"MetricName", "loss"}, {"Value", 0.25}}}}};
  auto matches = [&](const char* name, const char* op, const char* value) {
    auto wish =
        ReadSearch({{"SearchExpression",
                     {{"Filters", {{{"Name", name}, {"Operator", op}, {"Value", value}}}}}}});
    return wish && wish->Matches(view);
  };
  EXPECT_TRUE(matches("TrainingJobName", "Contains", "job"));
  EXPECT_TRUE(matches("HyperParameters.lr", "LessThan", "0.5"));
  EXPECT_FALSE(matches("HyperParameters.lr", "GreaterThan", "0.5"));
  EXPECT_TRUE(matches("Tags.team", "Equals", "vision"));
  EXPECT_TRUE(matches("Metrics.loss", "LessThanOrEqualTo", "0.25"));
  EXPECT_TRUE(matches("Metrics.none", "NotExists", "x"));
  EXPECT_FALSE(ReadSearch({{"SearchExpression", {{"Filters", {{{"Name", 3}}}}}}}));
}

}  // namespace
}  // namespace athanor::sagemaker
