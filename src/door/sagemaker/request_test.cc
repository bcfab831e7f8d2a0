#include "door/sagemaker/request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace athanor::sagemaker {
namespace {

class TrainingRequestTest : public ::testing::Test {
 protected:
  static Json Body() {
    return {{"TrainingJobName", "job-1"},
            {"RoleArn", "arn:aws:iam::000000000000:role/any"},
            {"AlgorithmSpecification",
             {{"TrainingImage",
               "763104351884.dkr.ecr.us-west-2.amazonaws.com/"
               "pytorch-training:1.13.1-cpu-py39"},
              {"TrainingInputMode", "File"}}},
            {"OutputDataConfig", {{"S3OutputPath", "s3://b/out/"}}},
            {"ResourceConfig",
             {{"InstanceType", "ml.m5.large"}, {"InstanceCount", 1}, {"VolumeSizeInGB", 30}}},
            {"StoppingCondition", {{"MaxRuntimeInSeconds", 60}}},
            {"HyperParameters",
             {{"sagemaker_program", "\"train.py\""},
              {"sagemaker_submit_directory", "\"s3://b/src.tar.gz\""},
              {"lr", "0.1"}}}};
  }
  auto Read(const Json& body) {
    return ReadTrainingRequest(body, {images_, {"3.11", "1.13.1"}, false});
  }
  // The message of the refusal; empty: none.
  std::string Refused(const Json& body) {
    auto read = Read(body);
    return read ? std::string() : read.error().code + ": " + read.error().message;
  }

  ImageMap images_ = *ImageMap::Read("/nonexistent/images.yaml");
};

TEST_F(TrainingRequestTest, BecomesASpec) {
  auto read = Read(Body());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spec.name, "job-1");
  EXPECT_EQ(read->spec.origin, "sagemaker");
  EXPECT_EQ(read->spec.environment.base, "system");
  EXPECT_EQ(read->spec.resources.type, "ml.m5.large");
  EXPECT_EQ(read->spec.limits.max_runtime, std::chrono::seconds(60));
  EXPECT_EQ(read->spec.output_to, "s3://b/out/");
  EXPECT_EQ(read->source, "s3://b/src.tar.gz");
  EXPECT_EQ(read->program, "train.py");
  EXPECT_EQ(read->args, (std::vector<std::string>{"--lr", "0.1"}));
  EXPECT_EQ(Json::parse(read->spec.request), Body());
}

TEST_F(TrainingRequestTest, LimitsAreTheServices) {
  auto body = Body();
  body["TrainingJobName"] = "bad_name";
  EXPECT_NE(Refused(body).find("at 'trainingJobName' failed to satisfy constraint: Member must "
                               "satisfy regular expression pattern"),
            std::string::npos);
  body = Body();
  body.erase("RoleArn");
  EXPECT_NE(Refused(body).find("Value null at 'roleArn'"), std::string::npos);
  body = Body();
  body["HyperParameters"]["x"] = std::string(2501, 'x');
  EXPECT_NE(Refused(body).find("less than or equal to 2500"), std::string::npos);
}

TEST_F(TrainingRequestTest, WhatIsNotDoneYetIsRefusedOrSaid) {
  auto body = Body();
  body["ResourceConfig"]["InstanceCount"] = 2;
  body["HyperParameters"]["sagemaker_torch_distributed_enabled"] = "true";
  EXPECT_NE(Refused(body).find("torch_distributed with InstanceCount 2"), std::string::npos);
  body = Body();
  body["HyperParameters"]["sagemaker_mpi_enabled"] = "true";
  body["HyperParameters"]["sagemaker_mpi_num_of_processes_per_host"] = "2";
  EXPECT_NE(Refused(body).find("mpi with 2 processes"), std::string::npos);
  body = Body();
  body["AlgorithmSpecification"]["TrainingImage"] = "me/unknown:1";
  EXPECT_NE(Refused(body).find("\"me/unknown:1\": system"), std::string::npos);
  body = Body();
  body["InputDataConfig"] = {
      {{"ChannelName", "train"},
       {"InputMode", "FastFile"},
       {"DataSource", {{"S3DataSource", {{"S3DataType", "S3Prefix"}, {"S3Uri", "s3://b/d"}}}}}}};
  auto read = Read(body);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->spec.notes.size(), 2u);  // the first is about the image's Python
  EXPECT_NE(read->spec.notes[1].find("FastFile is not available yet"), std::string::npos);
  EXPECT_EQ(read->spec.data[0].from, "s3://b/d");
}

TEST_F(TrainingRequestTest, InstancesAreTheNodesOfTheJob) {
  auto body = Body();
  EXPECT_EQ(Read(body)->spec.resources.nodes, 1u);
  body["ResourceConfig"]["InstanceCount"] = 3;
  auto read = Read(body);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spec.resources.nodes, 3u);
  EXPECT_EQ(read->spec.resources.type, "ml.m5.large");
  body["ResourceConfig"]["InstanceCount"] = 1'000'000;
  EXPECT_NE(Refused(body).find("at most 1024"), std::string::npos);
  body["ResourceConfig"] = {
      {"VolumeSizeInGB", 30},
      {"InstanceGroups",
       {{{"InstanceGroupName", "a"}, {"InstanceType", "ml.m5.large"}, {"InstanceCount", 1}},
        {{"InstanceGroupName", "b"}, {"InstanceType", "ml.m5.large"}, {"InstanceCount", 2}}}}};
  read = Read(body);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->spec.resources.nodes, 3u);
  body["ResourceConfig"]["InstanceGroups"][1]["InstanceType"] = "ml.m5.xlarge";
  EXPECT_NE(Refused(body).find("different instance types"), std::string::npos);
}

TEST_F(TrainingRequestTest, ShardsOfAChannelAreRefusedOnSeveralInstances) {
  auto body = Body();
  body["InputDataConfig"] = {{{"ChannelName", "train"},
                              {"DataSource",
                               {{"S3DataSource",
                                 {{"S3DataType", "S3Prefix"},
                                  {"S3Uri", "s3://b/d"},
                                  {"S3DataDistributionType", "ShardedByS3Key"}}}}}}};
  EXPECT_TRUE(Read(body));  // one instance has all of them anyway
  body["ResourceConfig"]["InstanceCount"] = 2;
  EXPECT_NE(Refused(body).find("ShardedByS3Key"), std::string::npos);
}

TEST_F(TrainingRequestTest, SpotNeedsAWaitThatCoversTheRun) {
  auto body = Body();
  body["EnableManagedSpotTraining"] = true;
  EXPECT_NE(Refused(body).find("MaxWaitTimeInSeconds is required"), std::string::npos);
  body["StoppingCondition"]["MaxWaitTimeInSeconds"] = 30;
  EXPECT_NE(Refused(body).find("30 is below 60"), std::string::npos);
  body["StoppingCondition"]["MaxWaitTimeInSeconds"] = 90;
  body["CheckpointConfig"] = {{"S3Uri", "s3://b/ckpt"}};
  auto read = Read(body);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->spec.resources.spot.use);
  EXPECT_EQ(read->spec.checkpoints.uri, "s3://b/ckpt");
}

TEST_F(TrainingRequestTest, OurOwnPlaceholdersAreTextInArguments) {
  auto body = Body();
  body["HyperParameters"]["path"] = "\"${lr}\"";
  auto read = Read(body);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->args.back(), "$${lr}");
}

TEST_F(TrainingRequestTest, AVersionThatIsNotThereIsSaid) {
  auto body = Body();
  body["AlgorithmSpecification"]["TrainingImage"] = "x/pytorch-training:2.0.1-gpu-py310";
  auto read = Read(body);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->spec.notes.size(), 1u);
  EXPECT_NE(read->spec.notes[0].find("torch is 1.13.1, not 2.0.1"), std::string::npos);
  EXPECT_NE(read->spec.notes[0].find("there is no GPU"), std::string::npos);
}

TEST(CommandFor, RunsScriptsAndPrograms) {
  EXPECT_EQ(CommandFor("a/train.py", {"--x", "1"}),
            (std::vector<std::string>{"python3", "a/train.py", "--x", "1"}));
  EXPECT_EQ(CommandFor("run.sh", {"-b"}).front(), "/bin/sh");
  EXPECT_EQ(CommandFor("run.sh", {"-b"}).back(), "-b");
}

}  // namespace
}  // namespace athanor::sagemaker
