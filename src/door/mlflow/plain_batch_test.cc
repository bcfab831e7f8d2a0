#include "door/mlflow/plain_batch.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(PlainBatch, MetricsAreReadAndTheRestIsLeft) {
  const auto batch = ReadPlainBatch(
      R"( {"run_id": "a\"b]", "tags": [{"key": "t", "value": "]"}], "metrics": [
          {"key": "loss/x", "value": -1.5e-3, "timestamp": 17, "step": 3},
          {"timestamp": 0, "value": 2, "key": "acc"}], "params": []} )");
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->metrics.size(), 2u);
  EXPECT_EQ(batch->metrics[0].name, "loss/x");
  EXPECT_EQ(batch->metrics[0].value, -1.5e-3);
  EXPECT_EQ(batch->metrics[0].wall_ns, 17'000'000);
  EXPECT_EQ(batch->metrics[0].step, 3);
  EXPECT_EQ(batch->metrics[1].name, "acc");
  EXPECT_FALSE(batch->metrics[1].step);
  EXPECT_EQ(batch->rest, R"( {"run_id": "a\"b]", "tags": [{"key": "t", "value": "]"}], )"
                         R"("metrics":null, "params": []} )");
}

TEST(PlainBatch, WhatIsOutOfTheOrdinaryIsLeftToTheGeneralReader) {
  const auto metric = [](const std::string& members) {
    return ReadPlainBatch(R"({"metrics": [{)" + members + "}]}").has_value();
  };
  ASSERT_TRUE(metric(R"("key": "k", "value": 1, "timestamp": 1)"));
  for (const char* odd :
       {R"("key": "k", "value": NaN, "timestamp": 1)", R"("key": "k", "value": "1", "timestamp": 1)",
        R"("key": "k\u0041", "value": 1, "timestamp": 1)", "\"key\": \"\xc3\xa4\", \"value\": 1, \"timestamp\": 1",
        R"("key": "k", "value": 01, "timestamp": 1)", R"("key": "k", "value": 1., "timestamp": 1)",
        R"("key": "k", "value": 1e999, "timestamp": 1)", R"("key": "k", "value": +1, "timestamp": 1)",
        R"("key": "k", "value": 1, "timestamp": -1)", R"("key": "k", "value": 1, "timestamp": 1.0)",
        R"("key": "k", "value": 1, "timestamp": 99999999999999)", R"("key": "k", "value": 1)",
        R"("key": "k", "value": 1, "timestamp": 1, "model_id": "m")",
        R"("key": "k", "key": "l", "value": 1, "timestamp": 1)", R"("key": null, "value": 1, "timestamp": 1)",
        R"("key": "k", "value": 1, "timestamp": 1,)", R"("key" "k", "value": 1, "timestamp": 1)", ""}) {
    EXPECT_FALSE(metric(odd)) << odd;
  }
  for (const char* body :
       {"", "[]", "{", "{}", R"({"metrics": {}})", R"({"metrics": [)", R"({"metrics": [{}]})",
        R"({"metrics": [], "metrics": null})", R"({"a": "metrics)", R"({"a": ]})", R"("metrics")",
        R"({"run_id": "x"})", R"({"metrics": null})"}) {
    EXPECT_FALSE(ReadPlainBatch(body)) << body;
  }
}

}  // namespace
}  // namespace athanor
