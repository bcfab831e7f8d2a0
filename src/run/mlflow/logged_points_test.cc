#include "run/mlflow/logged_points.h"

#include <gtest/gtest.h>

#include <cmath>

#include "job/point.h"
#include "link/kept_call.h"

namespace athanor {
namespace {

const JobId kRun = JobId::New();
const uint32_t kChannel = ChannelOfKeptCalls(7);

PointBatch Read(const std::string& call, std::string body) {
  const auto at = body.find("RUN");
  if (at != std::string::npos) body.replace(at, 3, kRun.value.ToHex());
  return LoggedPoints({9, "POST", "/api/2.0/mlflow/runs/" + call, body}, kChannel, kRun);
}

TEST(LoggedPoints, AMetricIsReadInEveryFormThatTheServerReads) {
  for (
      const char* body : {
          R"({"run_id":"RUN","key":"loss","value":0.5,"timestamp":17,"step":3})",
          R"({"run_uuid":"RUN","key":"los\u0073","value":"0.5","timestamp":"17","step":"3","more":1})",
      }) {
    const auto batch = Read("log-metric", body);
    ASSERT_EQ(batch.items.size(), 1u) << body;
    const auto& point = batch.items[0].point;
    EXPECT_EQ(point.name, "loss");
    EXPECT_EQ(point.value, 0.5);
    EXPECT_EQ(point.step, 3);
    EXPECT_EQ(point.wall_ns, 17'000'000);
    EXPECT_EQ(batch.channel, kChannel);
    EXPECT_EQ(batch.items[0].seq, SeqOfPoint({kChannel, 9, {}}, 0));
  }
  const auto nan =
      Read("log-metric", R"({"run_id":"RUN","key":"loss","value":"NaN","timestamp":1})");
  ASSERT_EQ(nan.items.size(), 1u);
  EXPECT_TRUE(std::isnan(nan.items[0].point.value));
}

TEST(LoggedPoints, EachPointOfABatchHasItsOwnNumberAlsoBehindOneThatCannotBeRead) {
  const auto batch = Read("log-batch", R"({"params":[],"run_id":"RUN","metrics":[
      {"key":"a","value":1,"timestamp":1},{"key":"b","value":[],"timestamp":1},
      {"key":"c","value":3,"timestamp":1,"step":2}]})");
  ASSERT_EQ(batch.items.size(), 2u);
  EXPECT_EQ(batch.items[0].point.name, "a");
  EXPECT_EQ(batch.items[1].point.name, "c");
  EXPECT_EQ(batch.items[1].seq, SeqOfPoint({kChannel, 9, {}}, 2));
}

TEST(LoggedPoints, OtherCallsAndOtherRunsHaveNone) {
  const std::string other = JobId::New().value.ToHex();
  EXPECT_TRUE(
      Read("log-metric", R"({"run_id":")" + other + R"(","key":"a","value":1,"timestamp":1})")
          .items.empty());
  EXPECT_TRUE(
      Read("log-batch", R"({"run_id":"RUN","params":[{"key":"a","value":"1"}]})").items.empty());
  EXPECT_TRUE(Read("log-parameter", R"({"run_id":"RUN","key":"a","value":"1"})").items.empty());
  EXPECT_TRUE(Read("log-metric", "{").items.empty());
}

}  // namespace
}  // namespace athanor
