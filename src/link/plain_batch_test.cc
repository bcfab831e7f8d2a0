#include "link/plain_batch.h"

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
       {R"("key": "k", "value": NaN, "timestamp": 1)",
        R"("key": "k", "value": "1", "timestamp": 1)",
        R"("key": "k\u0041", "value": 1, "timestamp": 1)",
        "\"key\": \"\xc3\xa4\", \"value\": 1, \"timestamp\": 1",
        R"("key": "k", "value": 01, "timestamp": 1)", R"("key": "k", "value": 1., "timestamp": 1)",
        R"("key": "k", "value": 1e999, "timestamp": 1)",
        R"("key": "k", "value": +1, "timestamp": 1)", R"("key": "k", "value": 1, "timestamp": -1)",
        R"("key": "k", "value": 1, "timestamp": 1.0)",
        R"("key": "k", "value": 1, "timestamp": 99999999999999)", R"("key": "k", "value": 1)",
        R"("key": "k", "value": 1, "timestamp": 1, "model_id": "m")",
        R"("key": "k", "key": "l", "value": 1, "timestamp": 1)",
        R"("key": null, "value": 1, "timestamp": 1)", R"("key": "k", "value": 1, "timestamp": 1,)",
        R"("key" "k", "value": 1, "timestamp": 1)", ""}) {
    EXPECT_FALSE(metric(odd)) << odd;
  }
  for (const char* body :
       {"", "[]", "{", "{}", R"({"metrics": {}})", R"({"metrics": [)", R"({"metrics": [{}]})",
        R"({"metrics": [], "metrics": null})", R"({"a": "metrics)", R"({"a": ]})", R"("metrics")",
        R"({"run_id": "x"})", R"({"metrics": null})"}) {
    EXPECT_FALSE(ReadPlainBatch(body)) << body;
  }
}

TEST(PlainMetric, IsReadWithItsRun) {
  const std::string body = R"({"run_uuid": "ab", "run_id": "ab", "key": "loss", "value": 0.25,
                               "timestamp": 17, "step": 3} )";
  const auto metric = ReadPlainMetric(body);
  ASSERT_TRUE(metric);
  EXPECT_EQ(metric->run, "ab");
  EXPECT_EQ(metric->point.name, "loss");
  EXPECT_EQ(metric->point.value, 0.25);
  EXPECT_EQ(metric->point.wall_ns, 17'000'000);
  EXPECT_EQ(metric->point.step, 3);
}

TEST(PlainMetric, WhatIsOutOfTheOrdinaryIsLeftToTheGeneralReader) {
  const std::string usual = R"("key": "k", "value": 1, "timestamp": 1)";
  ASSERT_TRUE(ReadPlainMetric(R"({"run_uuid": "a", )" + usual + "}"));
  for (const std::string& odd :
       {"{" + usual + "}", R"({"run_id": "", )" + usual + "}", R"({"run_id": null, )" + usual + "}",
        R"({"run_id": "a", "run_uuid": "b", )" + usual + "}",
        R"({"run_id": "a", "run_id": "a", )" + usual + "}",
        R"({"run_id": "a", "model_id": "m", )" + usual + "}", R"({"run_id": "a", )" + usual + "} x",
        R"({"run_id": "a", )" + usual}) {
    EXPECT_FALSE(ReadPlainMetric(odd)) << odd;
  }
}

}  // namespace
}  // namespace athanor
