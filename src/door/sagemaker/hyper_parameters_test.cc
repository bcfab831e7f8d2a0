#include "door/sagemaker/hyper_parameters.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace athanor::sagemaker {
namespace {

using Words = std::vector<std::string>;

TEST(HyperParameters, BecomeArgumentsInTheToolkitsOrder) {
  const auto read = ReadHyperParameters(
      {{"lr", "0.1"}, {"b", "64"}, {"name", "\"x y\""}, {"sagemaker_program", "\"train.py\""}});
  EXPECT_EQ(read.args, (Words{"-b", "64", "--lr", "0.1", "--name", "x y"}));
  EXPECT_EQ(read.platform.at("sagemaker_program"), "train.py");
  ASSERT_EQ(read.params.size(), 3u);
  EXPECT_EQ(read.params[2].value, "x y");
  EXPECT_EQ(read.params[2].kind, Param::Kind::kString);
  EXPECT_EQ(read.params[1].kind, Param::Kind::kNumber);
}

TEST(HyperParameters, AreShownAsPythonShowsThem) {
  const auto read = ReadHyperParameters({{"a1", "true"},
                                         {"a2", "null"},
                                         {"a3", "[1, \"x\", 0.5]"},
                                         {"a4", "{\"k\": 1, \"m\": \"n\"}"},
                                         {"a5", "True"},
                                         {"a6", "1e-5"},
                                         {"a7", "plain text"}});
  EXPECT_EQ(read.args, (Words{"--a1", "True", "--a2", "", "--a3", "[1, 'x', 0.5]", "--a4",
                              "k=1,m=n", "--a5", "True", "--a6", "1e-05", "--a7", "plain text"}));
}

TEST(HyperParameters, FloatsReadBack) {
  EXPECT_EQ(PythonText(Json(0.1)), "0.1");
  EXPECT_EQ(PythonText(Json(1e16)), "1e+16");
  EXPECT_EQ(PythonText(Json(100.0)), "100.0");
  EXPECT_EQ(PythonText(Json(0.0001)), "0.0001");
  EXPECT_EQ(PythonText(Json(123456789.125)), "123456789.125");
}

TEST(HyperParameters, TheTunersOwnIsLeftOut) {
  const auto read = ReadHyperParameters({{"_tuning_objective_metric", "loss"}});
  EXPECT_TRUE(read.args.empty());
  EXPECT_TRUE(read.params.empty());
}

}  // namespace
}  // namespace athanor::sagemaker
