// CloudWatch: GetMetricStatistics, GetMetricData and ListMetrics over the series of jobs.
#include <algorithm>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/cloudwatch/cloudwatch.h"
#include "door/cloudwatch/log_streams.h"
#include "door/cloudwatch/members.h"
#include "door/cloudwatch/metric_stats.h"
#include "door/context.h"

namespace athanor {
namespace {

constexpr char kInvalid[] = "ValidationError";
constexpr char kBadValue[] = "InvalidParameterValue";
constexpr char kBadCombination[] = "InvalidParameterCombination";
constexpr std::string_view kDimension = "TrainingJobName";
constexpr size_t kLongestMetricName = 255;
constexpr int64_t kMostPoints = 100'800;  // of one answer
constexpr size_t kMostListed = 500;
constexpr size_t kMostJobsLookedAt = 500;
constexpr int64_t kNanosPerMilli = 1'000'000;

// What a request calls one metric.
struct MetricName {
  std::string space;
  std::string name;
  std::string job;  // empty: the dimensions are not those of a job's series
  std::string unit;
};

struct Dimension {
  std::string name;
  std::string value;
  bool has_value = false;
};

std::vector<Dimension> ReadDimensions(Members& members, bool values_needed) {
  std::vector<Dimension> dimensions;
  const Json* list = members.List("Dimensions", 30);
  if (!list) return dimensions;
  for (size_t i = 0; i < list->size(); ++i) {
    auto inner = members.In((*list)[i], fmt::format("dimensions.{}.member", i + 1));
    Dimension dimension{inner.RequiredText("Name", kLongestMetricName), inner.Text("Value", 1024),
                        inner.Has("Value")};
    if (values_needed && !dimension.has_value) inner.Missing("Value");
    members.Adopt(inner);
    dimensions.push_back(std::move(dimension));
  }
  return dimensions;
}

MetricName ReadMetric(Members& members) {
  MetricName metric;
  metric.space = members.RequiredText("Namespace", kLongestMetricName);
  metric.name = members.RequiredText("MetricName", 1024);
  const auto dimensions = ReadDimensions(members, true);
  if (dimensions.size() == 1 && dimensions[0].name == kDimension) metric.job = dimensions[0].value;
  return metric;
}

// In seconds: 1, 5, 10, 20, 30 or whole minutes.
void CheckPeriod(Members& members, std::string_view name, std::optional<int64_t> period) {
  static constexpr int64_t kShort[] = {1, 5, 10, 20, 30};
  if (!period) return;
  const bool known = std::find(std::begin(kShort), std::end(kShort), *period) != std::end(kShort);
  if (known || *period % 60 == 0) return;
  members.Fault({400, kBadValue,
                 fmt::format("The value {} for parameter {} is invalid: it must be 1, 5, 10, 20, "
                             "30 or a multiple of 60.",
                             *period, name)});
}

void CheckWindow(Members& members, const StatWindow& window) {
  if (window.start_ms >= window.end_ms) {
    members.Fault(
        {400, kBadCombination, "The parameter StartTime must be less than the parameter EndTime."});
  }
}

StatWindow ReadWindow(Members& members) {
  StatWindow window;
  for (const char* name : {"StartTime", "EndTime"}) {
    if (!members.Has(name)) members.Missing(name);
  }
  window.start_ms = members.Time("StartTime").value_or(0);
  window.end_ms = members.Time("EndTime").value_or(1);
  CheckWindow(members, window);
  return window;
}

// Nothing for a metric that is not there: CloudWatch does not say so either.
tl::expected<std::vector<StatPoint>, AwsError> Read(const CloudWatchSources& sources,
                                                    const MetricName& metric,
                                                    const StatWindow& window) {
  if (metric.space != kTrainingJobs || metric.job.empty()) return {};
  if (!metric.unit.empty() && metric.unit != "None") return {};
  const auto record = JobCalled(sources.jobs, metric.job);
  if (!record && record.error().code == ErrorCode::kNotFound) return {};
  if (!record) return tl::unexpected(StoreFault(record.error()));
  const auto points = sources.series.Read(record->id, metric.name, false, ResumesOf(*record));
  if (!points && points.error().code == ErrorCode::kNotFound) return {};
  if (!points) return tl::unexpected(StoreFault(points.error()));
  return Statistics(*points, window);
}

CloudWatchReply GetMetricStatistics(const CloudWatchSources& sources, const Json& request) {
  Members members(request, kInvalid);
  MetricName metric = ReadMetric(members);
  metric.unit = members.Text("Unit");
  StatWindow window = ReadWindow(members);
  const auto period = members.Number("Period", 1, std::numeric_limits<int32_t>::max());
  if (!members.Has("Period")) members.Missing("Period");
  CheckPeriod(members, "Period", period);
  const auto statistics = members.Texts("Statistics", 5);
  for (const auto& statistic : statistics) {
    if (IsStatistic(statistic)) continue;
    members.Constraint("Statistics", Printable(statistic.substr(0, 100)),
                       "satisfy enum value set: [SampleCount, Average, Sum, Minimum, Maximum]");
  }
  if (!members.Texts("ExtendedStatistics", 10).empty()) {
    members.Fault({400, kBadValue,
                   "ExtendedStatistics are not made here; ask for Statistics Average, Sum, "
                   "Minimum, Maximum or SampleCount"});
  }
  if (statistics.empty()) {
    members.Fault({400, kBadCombination,
                   "At least one of the parameters Statistics and ExtendedStatistics must be "
                   "specified."});
  }
  window.period_ms = period.value_or(60) * 1000;
  // AWS stops at 1,440, a day of minutes, on which TrainingJobAnalytics of longer jobs fails.
  const int64_t most = (window.end_ms - window.Origin()) / window.period_ms;
  if (most > kMostPoints) {
    members.Fault({400, kBadCombination,
                   fmt::format("You have requested up to {} datapoints, which exceeds the limit of "
                               "{}. You may reduce the datapoints requested by increasing Period, "
                               "or decreasing the time range.",
                               most, kMostPoints)});
  }
  if (members.fault()) return tl::unexpected(*members.fault());
  const auto points = Read(sources, metric, window);
  if (!points) return tl::unexpected(points.error());
  Json views = Json::array();
  for (const auto& point : *points) {
    Json view = {{"Timestamp", point.time_ms}};
    for (const auto& statistic : statistics) view[statistic] = ValueOf(point, statistic);
    view["Unit"] = "None";
    views.push_back(std::move(view));
  }
  return Json{{"Label", metric.name}, {"Datapoints", std::move(views)}};
}

struct DataQuery {
  std::string id;
  std::string label;
  MetricName metric;
  int64_t period_ms = 0;
  std::string statistic;
  bool returned = true;
};

DataQuery ReadQuery(Members& members) {
  DataQuery query;
  query.id = members.RequiredText("Id", kLongestMetricName);
  query.label = members.Text("Label");
  query.returned = members.Flag("ReturnData", true);
  if (members.Has("Expression")) {
    members.Fault({400, kInvalid,
                   fmt::format("metric math is not done here: the query '{}' has an Expression; "
                               "ask for a MetricStat and reckon in the client",
                               Printable(query.id.substr(0, 100)))});
    return query;
  }
  const Json* stat = members.Object("MetricStat");
  if (!stat) {
    members.Missing("MetricStat");
    return query;
  }
  auto inner = members.In(*stat, "metricStat");
  const auto period = inner.Number("Period", 1, std::numeric_limits<int32_t>::max());
  if (!inner.Has("Period")) inner.Missing("Period");
  CheckPeriod(inner, "Period", period);
  query.period_ms = period.value_or(60) * 1000;
  query.statistic = inner.RequiredText("Stat");
  if (!IsStatistic(query.statistic)) {
    inner.Fault({400, kInvalid,
                 fmt::format("The value {} for parameter Stat is not supported; use Average, Sum, "
                             "Minimum, Maximum or SampleCount",
                             Printable(query.statistic.substr(0, 100)))});
  }
  if (const Json* metric = inner.Object("Metric")) {
    auto named = inner.In(*metric, "metric");
    query.metric = ReadMetric(named);
    inner.Adopt(named);
  } else {
    inner.Missing("Metric");
  }
  query.metric.unit = inner.Text("Unit");
  members.Adopt(inner);
  return query;
}

std::vector<DataQuery> ReadQueries(Members& members) {
  std::vector<DataQuery> queries;
  std::set<std::string> ids;
  const Json* list = members.List("MetricDataQueries", 500);
  if (!list) {
    members.Missing("MetricDataQueries");
    return queries;
  }
  for (size_t i = 0; i < list->size(); ++i) {
    auto inner = members.In((*list)[i], fmt::format("metricDataQueries.{}.member", i + 1));
    queries.push_back(ReadQuery(inner));
    members.Adopt(inner);
    if (!ids.insert(queries.back().id).second) {
      members.Fault({400, kInvalid,
                     fmt::format("The values for parameter id in MetricDataQueries must be unique: "
                                 "'{}' is there twice",
                                 Printable(queries.back().id.substr(0, 100)))});
    }
  }
  return queries;
}

CloudWatchReply GetMetricData(const CloudWatchSources& sources, const Json& request) {
  Members members(request, kInvalid);
  const auto queries = ReadQueries(members);
  StatWindow window = ReadWindow(members);
  const std::string order = members.Text("ScanBy");
  if (!order.empty() && order != "TimestampAscending" && order != "TimestampDescending") {
    members.Constraint("ScanBy", Printable(order.substr(0, 100)),
                       "satisfy enum value set: [TimestampDescending, TimestampAscending]");
  }
  const int64_t most = members.Number("MaxDatapoints", 1, kMostPoints).value_or(kMostPoints);
  // How many datapoints the pages before this one held.
  const int64_t given =
      members.Number("NextToken", 0, std::numeric_limits<int64_t>::max()).value_or(0);
  if (members.fault()) return tl::unexpected(*members.fault());
  Json results = Json::array();
  Json answer = Json::object();
  int64_t seen = 0;
  for (const auto& query : queries) {
    if (!query.returned) continue;
    window.period_ms = query.period_ms;
    auto points = Read(sources, query.metric, window);
    if (!points) return tl::unexpected(points.error());
    if (order != "TimestampAscending") std::reverse(points->begin(), points->end());
    Json times = Json::array();
    Json values = Json::array();
    bool partial = false;
    for (const auto& point : *points) {
      partial = seen - given >= most;
      if (partial) break;
      if (seen++ < given) continue;
      times.push_back(point.time_ms);
      values.push_back(ValueOf(point, query.statistic));
    }
    results.push_back(Json{{"Id", query.id},
                           {"Label", query.label.empty() ? query.metric.name : query.label},
                           {"Timestamps", std::move(times)},
                           {"Values", std::move(values)},
                           {"StatusCode", partial ? "PartialData" : "Complete"}});
    if (partial) {
      answer["NextToken"] = std::to_string(seen);
      break;
    }
  }
  answer["MetricDataResults"] = std::move(results);
  answer["Messages"] = Json::array();
  return answer;
}

struct ListAsked {
  std::string space;
  std::string name;
  std::optional<std::string> job;
  bool foreign = false;  // dimensions that no series here has
  int64_t since_ns = std::numeric_limits<int64_t>::min();
  std::optional<JobId> from_job;  // a token: continue with this job ...
  std::string after;              // ... after this metric
};

tl::expected<ListAsked, AwsError> ReadListAsked(const CloudWatchSources& sources,
                                                const Json& request) {
  Members members(request, kInvalid);
  ListAsked asked;
  asked.space = members.Text("Namespace", kLongestMetricName);
  asked.name = members.Text("MetricName", 1024);
  for (const auto& dimension : ReadDimensions(members, false)) {
    if (dimension.name != kDimension) asked.foreign = true;
    if (dimension.has_value) asked.job = dimension.value;
  }
  const std::string recent = members.Text("RecentlyActive");
  if (!recent.empty() && recent != "PT3H") {
    members.Constraint("RecentlyActive", Printable(recent.substr(0, 100)),
                       "satisfy enum value set: [PT3H]");
  }
  if (!recent.empty()) {
    asked.since_ns = (sources.clock.Wall().ms - 3 * 3'600'000) * kNanosPerMilli;
  }
  if (members.Has("NextToken")) {
    const std::string token = members.Text("NextToken");
    const size_t slash = token.find('/');
    asked.from_job = JobId::Parse(token.substr(0, slash));
    if (slash != std::string::npos) asked.after = token.substr(slash + 1);
    if (!asked.from_job || slash == std::string::npos) {
      members.Fault({400, kBadValue, "Invalid nextToken"});
    }
  }
  if (members.fault()) return tl::unexpected(*members.fault());
  return asked;
}

// The jobs to look at, by id.
Result<std::vector<std::pair<JobId, std::string>>> ToList(const CloudWatchSources& sources,
                                                          const ListAsked& asked) {
  std::vector<std::pair<JobId, std::string>> found;
  if (asked.foreign || (!asked.space.empty() && asked.space != kTrainingJobs)) return found;
  if (asked.job) {
    auto record = JobCalled(sources.jobs, *asked.job);
    if (record) found.emplace_back(record->id, *asked.job);
    if (!record && record.error().code != ErrorCode::kNotFound) {
      return tl::unexpected(std::move(record).error());
    }
  } else {
    ATHANOR_TRY(auto jobs, JobsWithPrefix(sources.jobs, {}));
    for (auto& [name, job] : jobs) found.emplace_back(job.id, std::move(name));
  }
  std::sort(found.begin(), found.end());
  if (asked.from_job) {
    std::erase_if(found, [&](const auto& job) { return job.first < *asked.from_job; });
  }
  return found;
}

CloudWatchReply ListMetrics(const CloudWatchSources& sources, const Json& request) {
  const auto asked = ReadListAsked(sources, request);
  if (!asked) return tl::unexpected(asked.error());
  const auto jobs = ToList(sources, *asked);
  if (!jobs) return tl::unexpected(StoreFault(jobs.error()));
  Json metrics = Json::array();
  Json answer = Json::object();
  size_t looked_at = 0;
  for (const auto& [id, name] : *jobs) {
    std::string last = asked->from_job == id ? asked->after : std::string();
    if (looked_at++ == kMostJobsLookedAt) {
      answer["NextToken"] = id.ToString() + "/";
      break;
    }
    const auto summaries = sources.series.Summaries(id);
    if (!summaries) return tl::unexpected(StoreFault(summaries.error()));
    for (const auto& summary : *summaries) {
      const bool wanted = asked->name.empty() || summary.name == asked->name;
      if (!wanted || summary.name <= last || summary.last_wall_ns < asked->since_ns) continue;
      if (metrics.size() == kMostListed) {
        answer["NextToken"] = id.ToString() + "/" + last;
        break;
      }
      last = summary.name;
      Json dimensions = Json::array();
      dimensions.push_back(Json{{"Name", kDimension}, {"Value", name}});
      metrics.push_back(Json{{"Namespace", kTrainingJobs},
                             {"MetricName", summary.name},
                             {"Dimensions", std::move(dimensions)}});
    }
    if (answer.contains("NextToken")) break;
  }
  answer["Metrics"] = std::move(metrics);
  return answer;
}

}  // namespace

CloudWatchReply AnswerMetrics(const CloudWatchSources& sources, std::string_view operation,
                              const Json& request) {
  if (operation == "GetMetricStatistics") return GetMetricStatistics(sources, request);
  if (operation == "GetMetricData") return GetMetricData(sources, request);
  if (operation == "ListMetrics") return ListMetrics(sources, request);
  if (operation == "PutMetricData") {
    return tl::unexpected(AwsError{
        400, "UnknownOperationException",
        "PutMetricData is not taken here: metrics belong to a job; log them in its script with "
        "athanor.log(loss=...), or print them and name them in MetricDefinitions"});
  }
  return tl::unexpected(AwsError{
      400, "UnknownOperationException",
      fmt::format("CloudWatch has no {} here; there are GetMetricStatistics, GetMetricData and "
                  "ListMetrics",
                  Printable(operation.substr(0, 100)))});
}

}  // namespace athanor
