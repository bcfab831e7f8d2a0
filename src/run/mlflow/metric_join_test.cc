// Planted bugs that turn these red: joining without looking at the run gives one run's metrics to
// another; joining a call that has tags, too, loses them.
#include "run/mlflow/metric_join.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text/json.h"

namespace athanor {
namespace {

constexpr char kOne[] = "/api/2.0/mlflow/runs/log-metric";
constexpr char kMany[] = "/api/2.0/mlflow/runs/log-batch";

KeptCall Metric(uint64_t seq, const std::string& run, double value) {
  const Json body = {{"run_uuid", run}, {"run_id", run},  {"key", "m"},
                     {"value", value},  {"timestamp", 1}, {"step", seq}};
  return {seq, "POST", kOne, DumpJson(body)};
}

TEST(MetricJoin, TakesSinglesAndBatchesInOrderWithEveryMember) {
  MetricJoin join;
  EXPECT_TRUE(join.Add(Metric(7, "r", 0.1)));
  const std::string odd = R"({"key":"a","value":"NaN","timestamp":2,"step":9007199254740993},)"
                          R"({"key":"b","value":-0.0,"timestamp":2,"model_id":"m-1"})";
  EXPECT_TRUE(join.Add({8, "POST", kMany, R"({"metrics":[)" + odd + R"(],"run_id":"r"})"}));
  EXPECT_TRUE(join.Add(Metric(9, "r", 1e-300)));
  EXPECT_EQ(join.calls(), 3u);
  EXPECT_EQ(join.last(), 9u);
  EXPECT_EQ(join.ends(), (std::vector<uint32_t>{1, 3, 4}));
  const auto call = join.Joined();
  EXPECT_EQ(call.seq, 7u);
  EXPECT_EQ(call.target, kMany);
  EXPECT_EQ(call.body,
            R"({"run_id":"r","metrics":[{"key":"m","value":0.1,"timestamp":1,"step":7},)" + odd +
                R"(,{"key":"m","value":1e-300,"timestamp":1,"step":9}]})");
}

TEST(MetricJoin, LeavesWhatIsNotTheSameAlone) {
  MetricJoin join;
  ASSERT_TRUE(join.Add(Metric(1, "r", 1)));
  const auto refused = [&join](const char* target, const char* body) {
    return !join.Add({2, "POST", target, body});
  };
  EXPECT_FALSE(join.Add(Metric(2, "other", 1)));
  EXPECT_FALSE(join.Add(Metric(3, "r", 1))) << "one is missing between";
  EXPECT_TRUE(refused(kMany, R"({"run_id":"r","metrics":[]})"));
  EXPECT_TRUE(refused(kMany, R"({"run_id":"r","metrics":[{}],"tags":[{"key":"k","value":"v"}]})"));
  EXPECT_TRUE(refused(kMany, R"({"run_id":"r","params":[]})"));
  EXPECT_TRUE(refused(kMany, R"({"run_id":"r","run_uuid":"q","metrics":[{}]})"));
  EXPECT_TRUE(refused(kMany, R"({"run_id":7,"run_uuid":"r","metrics":[{}]})"));
  EXPECT_TRUE(refused("/api/2.0/mlflow/runs/set-tag", R"({"run_id":"r","key":"k","value":"v"})"));
  EXPECT_TRUE(refused("/ajax-api/2.0/mlflow/runs/log-metric", R"({"run_id":"r","key":"k"})"));
  EXPECT_TRUE(refused("/api/2.0/mlflow/runs/log-metric?x=1", R"({"run_id":"r","key":"k"})"));
  EXPECT_EQ(join.calls(), 1u);
  EXPECT_TRUE(join.Add(Metric(2, "r", 1)));
}

TEST(MetricJoin, StopsAtAThousandMetricsAndAtAMebibyte) {
  MetricJoin join;
  uint64_t seq = 1;
  while (join.Add(Metric(seq, "r", 1))) ++seq;
  EXPECT_EQ(join.calls(), 1'000u);
  EXPECT_EQ(join.ends().back(), 1'000u);
  MetricJoin large;
  const std::string name(200'000, 'n');
  const auto body = R"({"run_id":"r","key":")" + name + R"(","value":1,"timestamp":1})";
  for (seq = 1; large.Add({seq, "POST", kOne, body});) ++seq;
  EXPECT_EQ(large.calls(), 5u);
}

}  // namespace
}  // namespace athanor
