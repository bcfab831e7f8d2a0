#include "door/sagemaker/shapes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace athanor::sagemaker {
namespace {

TEST(ShapeCheck, SpeaksAsTheServiceDoes) {
  ShapeCheck check;
  check.Text(Json{{"InstanceType", "huge"}}, "InstanceType", "resourceConfig",
             {.one_of = {"ml.m5.large", "ml.p3.2xlarge"}});
  ASSERT_TRUE(check.Error());
  EXPECT_EQ(check.Error()->code, "ValidationException");
  EXPECT_EQ(check.Error()->message,
            "1 validation error detected: Value 'huge' at 'resourceConfig.instanceType' failed to "
            "satisfy constraint: Member must satisfy enum value set: [ml.m5.large, ml.p3.2xlarge]");
}

TEST(ShapeCheck, CollectsEverything) {
  ShapeCheck check;
  const Json body = {{"A", ""}, {"B", 7}};
  check.Text(body, "A", "", {1, 3}, Need::kRequired);
  check.Number(body, "B", "", {0, 5});
  check.Text(body, "C", "", {}, Need::kRequired);
  const auto message = check.Error()->message;
  EXPECT_EQ(message.find("3 validation errors detected: "), 0u) << message;
  EXPECT_NE(message.find("Value '7' at 'b'"), std::string::npos);
  EXPECT_NE(message.find("Value null at 'c' failed to satisfy constraint: Member must not be null"),
            std::string::npos);
}

TEST(ShapeCheck, AWrongTypeIsASerializationError) {
  ShapeCheck check;
  check.Text(Json{{"A", 3}}, "A", "", {});
  EXPECT_EQ(check.Error()->code, "SerializationException");
}

TEST(ShapeCheck, CountsCharactersNotBytes) {
  ShapeCheck check;
  check.Text(Json{{"A", "äöü"}}, "A", "", {1, 3});
  EXPECT_FALSE(check.Error());
}

TEST(ShapeCheck, MapsAreCheckedByKeyAndValue) {
  ShapeCheck check;
  const Json body = {{"Environment", {{"1bad", "v"}, {"GOOD", "v"}}}};
  check.Texts(body, "Environment", "", 100, {0, 512, "[a-zA-Z_][a-zA-Z0-9_]*"}, {0, 512});
  EXPECT_NE(check.Error()->message.find("environment.key"), std::string::npos);
}

}  // namespace
}  // namespace athanor::sagemaker
