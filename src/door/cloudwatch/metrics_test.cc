#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "door/cloudwatch/cloudwatch_testing.h"
#include "door/cloudwatch/metric_stats.h"

namespace athanor {
namespace {

constexpr char kSpace[] = "/aws/sagemaker/TrainingJobs";
constexpr int64_t kT0 = 1'700'000'040'000;  // a whole minute
constexpr int64_t kMilli = 1'000'000;

class MetricsTest : public CloudWatchTest {
 protected:
  void Log(const JobRecord& record, const std::string& name, double value, int64_t wall_ms) {
    PointBatch batch;
    const uint64_t seq = ++seq_;
    batch.items = {{seq, {name, static_cast<int64_t>(seq), wall_ms * kMilli, value}}};
    ASSERT_TRUE(series_->Append(record.id, batch));
  }
  static Json Metric(const std::string& job, const std::string& name) {
    Json metric = {{"Namespace", kSpace}, {"MetricName", name}};
    metric["Dimensions"] = Json::array();
    metric["Dimensions"].push_back(Json{{"Name", "TrainingJobName"}, {"Value", job}});
    return metric;
  }
  static Json Asked(const std::string& job, const std::string& name, Json more = Json::object()) {
    Json request = Metric(job, name);
    request.update(Json{{"StartTime", kT0 / 1000},
                        {"EndTime", kT0 / 1000 + 600},
                        {"Period", 60},
                        {"Statistics", {"Average"}}});
    request.update(more);
    return request;
  }
  CloudWatchReply Call(const char* operation, const Json& request) const {
    return AnswerMetrics(Sources(), operation, request);
  }

  uint64_t seq_ = 0;
};

TEST(Statistics, AreMadeByPeriodsFromTheStartRoundedDown) {
  const StatWindow window{kT0 + 30'500, kT0 + 200'000, 120'000};
  EXPECT_EQ(window.Origin(), kT0);
  const StatWindow short_window{kT0 + 31'500, kT0 + 200'000, 5'000};
  EXPECT_EQ(short_window.Origin(), kT0 + 30'000);
}

TEST(Statistics, LeaveOutWhatIsOutsideAndWhatIsNoNumber) {
  const double huge = std::ldexp(1.5, 360);
  std::vector<SeriesPoint> points;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {1.0, 3.0, std::nan(""), infinity, huge}) {
    points.push_back({std::nullopt, kT0 * kMilli, value});
  }
  points.push_back({std::nullopt, (kT0 + 60'000) * kMilli, 7.0});
  points.push_back({std::nullopt, (kT0 - 1) * kMilli, 100.0});
  points.push_back({std::nullopt, (kT0 + 120'000) * kMilli, 100.0});
  const auto found = Statistics(points, {kT0, kT0 + 120'000, 60'000});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].time_ms, kT0);
  EXPECT_EQ(ValueOf(found[0], "Average"), 2);
  EXPECT_EQ(ValueOf(found[0], "Sum"), 4);
  EXPECT_EQ(ValueOf(found[0], "Minimum"), 1);
  EXPECT_EQ(ValueOf(found[0], "Maximum"), 3);
  EXPECT_EQ(ValueOf(found[0], "SampleCount"), 2);
  EXPECT_EQ(found[1].time_ms, kT0 + 60'000);
}

TEST_F(MetricsTest, StatisticsOfAJobsSeries) {
  const auto job = AddJob("train");
  Log(job, "loss", 4, kT0 + 1);
  Log(job, "loss", 2, kT0 + 59'999);
  Log(job, "loss", 1, kT0 + 60'000);
  const auto answer = Good(Call(
      "GetMetricStatistics", Asked("train", "loss", {{"Statistics", {"Average", "SampleCount"}}})));
  EXPECT_EQ(answer["Label"], "loss");
  ASSERT_EQ(answer["Datapoints"].size(), 2u);
  EXPECT_EQ(answer["Datapoints"][0]["Average"], 3);
  EXPECT_EQ(answer["Datapoints"][0]["SampleCount"], 2);
  EXPECT_EQ(answer["Datapoints"][0]["Timestamp"], kT0);
  EXPECT_EQ(answer["Datapoints"][0]["Unit"], "None");
  EXPECT_FALSE(answer["Datapoints"][0].contains("Sum"));
}

TEST_F(MetricsTest, WhatIsNotThereIsEmptyAsWithAws) {
  const auto job = AddJob("train");
  Log(job, "loss", 4, kT0);
  const auto count = [&](const Json& request) {
    return Good(Call("GetMetricStatistics", request))["Datapoints"].size();
  };
  EXPECT_EQ(count(Asked("train", "loss")), 1u);
  EXPECT_EQ(count(Asked(job.id.ToString(), "loss")), 1u);
  EXPECT_EQ(count(Asked("train", "accuracy")), 0u);
  EXPECT_EQ(count(Asked("nobody", "loss")), 0u);
  EXPECT_EQ(count(Asked("@last", "loss")), 0u);
  EXPECT_EQ(count(Asked("train", "loss", {{"Namespace", "AWS/EC2"}})), 0u);
  EXPECT_EQ(count(Asked("train", "loss", {{"Unit", "Seconds"}})), 0u);
  auto host = Asked("train", "loss");
  host["Dimensions"][0]["Name"] = "Host";
  EXPECT_EQ(count(host), 0u);
}

TEST_F(MetricsTest, DataOfSeveralMetricsComesNewestFirstAndInPages) {
  const auto job = AddJob("train");
  for (int i = 0; i < 5; ++i) {
    Log(job, "loss", i, kT0 + i * 60'000);
    Log(job, "accuracy", 10 + i, kT0 + i * 60'000);
  }
  Json request = {{"StartTime", kT0 / 1000}, {"EndTime", kT0 / 1000 + 600}, {"MaxDatapoints", 4}};
  request["MetricDataQueries"] = Json::array();
  for (const char* name : {"loss", "accuracy"}) {
    Json query = {{"Id", name}};
    query["MetricStat"] = {{"Metric", Metric("train", name)}, {"Period", 60}, {"Stat", "Sum"}};
    request["MetricDataQueries"].push_back(query);
  }
  std::map<std::string, std::vector<double>> values;
  int pages = 0;
  for (; pages < 10; ++pages) {
    const auto answer = Good(Call("GetMetricData", request));
    for (const auto& result : answer["MetricDataResults"]) {
      EXPECT_EQ(result["Values"].size(), result["Timestamps"].size());
      auto& of_metric = values[result["Id"].get<std::string>()];
      for (const auto& value : result["Values"]) of_metric.push_back(value.get<double>());
    }
    if (!answer.contains("NextToken")) break;
    request["NextToken"] = answer["NextToken"];
  }
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(values["loss"], (std::vector<double>{4, 3, 2, 1, 0}));
  EXPECT_EQ(values["accuracy"], (std::vector<double>{14, 13, 12, 11, 10}));
  request.erase("NextToken");
  request.erase("MaxDatapoints");
  request["ScanBy"] = "TimestampAscending";
  const auto answer = Good(Call("GetMetricData", request));
  EXPECT_EQ(answer["MetricDataResults"][0]["Values"][0], 0);
  EXPECT_EQ(answer["MetricDataResults"][1]["StatusCode"], "Complete");
}

TEST_F(MetricsTest, MetricsAreListedPageByPage) {
  const auto a = AddJob("a");
  const auto b = AddJob("b");
  for (int i = 0; i < 600; ++i) Log(a, "m" + std::to_string(i), 1, kT0);
  Log(b, "loss", 1, kT0);
  std::set<std::string> found;
  Json request = Json::object();
  int pages = 1;
  for (; pages < 10; ++pages) {
    const auto answer = Good(Call("ListMetrics", request));
    EXPECT_LE(answer["Metrics"].size(), 500u);
    for (const auto& metric : answer["Metrics"]) {
      found.insert(metric["Dimensions"][0]["Value"].get<std::string>() + " " +
                   metric["MetricName"].get<std::string>());
    }
    if (!answer.contains("NextToken")) break;
    request["NextToken"] = answer["NextToken"];
  }
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(found.size(), 601u);
  EXPECT_TRUE(found.count("b loss"));
  const auto count = [&](Json asked) { return Good(Call("ListMetrics", asked))["Metrics"].size(); };
  EXPECT_EQ(count({{"MetricName", "loss"}}), 1u);
  EXPECT_EQ(count({{"Namespace", "AWS/EC2"}}), 0u);
  const Json by_job = Metric("b", "loss");
  EXPECT_EQ(count({{"Dimensions", by_job["Dimensions"]}}), 1u);
  Json by_host = by_job["Dimensions"];
  by_host[0]["Name"] = "Host";
  EXPECT_EQ(count({{"Dimensions", by_host}}), 0u);
  EXPECT_EQ(count({{"MetricName", "loss"}, {"RecentlyActive", "PT3H"}}), 1u);
  Log(b, "old", 1, kT0 - 100'000'000);
  EXPECT_EQ(count({{"MetricName", "old"}, {"RecentlyActive", "PT3H"}}), 0u);
}

TEST_F(MetricsTest, RefusalsHaveAwssCodesAndSayWhatToDo) {
  AddJob("train");
  const auto code = [&](const Json& more) {
    return Bad(Call("GetMetricStatistics", Asked("train", "loss", more))).code;
  };
  EXPECT_EQ(code({{"Period", 7}}), "InvalidParameterValue");
  EXPECT_EQ(code({{"Period", 0}}), "ValidationError");
  EXPECT_EQ(code({{"Statistics", {"Median"}}}), "ValidationError");
  EXPECT_EQ(code({{"Statistics", Json::array()}}), "InvalidParameterCombination");
  EXPECT_EQ(code({{"ExtendedStatistics", {"p90"}}}), "InvalidParameterValue");
  EXPECT_EQ(code({{"StartTime", kT0 / 1000 + 601}}), "InvalidParameterCombination");
  EXPECT_EQ(code({{"StartTime", 0}, {"Period", 1}}), "InvalidParameterCombination");
  EXPECT_EQ(code({{"StartTime", "soon"}}), "ValidationError");
  EXPECT_EQ(code({{"MetricName", nullptr}}), "ValidationError");
  Json data = {{"StartTime", kT0 / 1000}, {"EndTime", kT0 / 1000 + 600}};
  data["MetricDataQueries"] = Json::array();
  data["MetricDataQueries"].push_back(Json{{"Id", "e1"}, {"Expression", "m1 * 2"}});
  const auto math = Bad(Call("GetMetricData", data));
  EXPECT_EQ(math.code, "ValidationError");
  EXPECT_NE(math.message.find("metric math"), std::string::npos);
  const auto put = Bad(Call("PutMetricData", Json::object()));
  EXPECT_EQ(put.code, "UnknownOperationException");
  EXPECT_NE(put.message.find("athanor.log"), std::string::npos);
  EXPECT_EQ(Bad(Call("PutDashboard", Json::object())).code, "UnknownOperationException");
}

}  // namespace
}  // namespace athanor
