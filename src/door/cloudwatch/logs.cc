// CloudWatch Logs: which operations there are, and those on groups and streams.
#include "door/cloudwatch/logs.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/cloudwatch/log_events.h"
#include "door/cloudwatch/log_streams.h"
#include "link/aws_environment.h"

namespace athanor {
namespace {

constexpr size_t kMostStreams = 50;  // a page
constexpr size_t kLongestLogName = 512;
constexpr std::string_view kGroupArn = ":log-group:";

std::string GroupArn() {
  return fmt::format("arn:aws:logs:{}:{}{}{}", kAwsRegion, kAwsAccount, kGroupArn, kTrainingJobs);
}

CloudWatchReply DescribeLogGroups(const CloudWatchSources& /*sources*/, const Json& request) {
  Members members(request, kInvalidLogs);
  const std::string prefix = members.Text("logGroupNamePrefix", kLongestLogName);
  const std::string part = members.Text("logGroupNamePattern", kLongestLogName);
  members.Number("limit", 1, 50);
  if (!prefix.empty() && !part.empty()) {
    members.Fault({400, kInvalidLogs,
                   "LogGroup name prefix and LogGroup name pattern are mutually exclusive"});
  }
  if (members.Has("nextToken")) {
    members.Fault({400, kInvalidLogs, "The specified nextToken is invalid."});
  }
  if (members.fault()) return tl::unexpected(*members.fault());
  Json groups = Json::array();
  if (StartsWith(kTrainingJobs, prefix) &&
      ToLower(kTrainingJobs).find(ToLower(part)) != std::string::npos) {
    groups.push_back(Json{{"logGroupName", kTrainingJobs},
                          {"metricFilterCount", 0},
                          {"arn", GroupArn() + ":*"},
                          {"logGroupArn", GroupArn()},
                          {"logGroupClass", "STANDARD"}});
  }
  return Json{{"logGroups", std::move(groups)}};
}

// What DescribeLogStreams goes through, and where a token left it.
struct Candidate {
  std::string name;
  std::string sorted_by;  // unique
};

struct StreamsAsked {
  std::string prefix;
  bool by_time = false;
  bool descending = false;
  size_t limit = kMostStreams;
  bool limit_given = false;
  std::string after;  // sorted_by of the last one seen; empty: none
};

tl::expected<StreamsAsked, AwsError> ReadStreamsAsked(const Json& request) {
  Members members(request, kInvalidLogs);
  if (auto group = CheckLogGroup(members)) return tl::unexpected(*group);
  StreamsAsked asked;
  asked.prefix = members.Text("logStreamNamePrefix", kLongestLogName);
  const std::string order = members.Text("orderBy");
  asked.by_time = order == "LastEventTime";
  if (!order.empty() && !asked.by_time && order != "LogStreamName") {
    members.Constraint("orderBy", Printable(order.substr(0, 100)),
                       "satisfy enum value set: [LogStreamName, LastEventTime]");
  }
  asked.descending = members.Flag("descending", false);
  if (const auto limit = members.Number("limit", 1, kMostStreams)) {
    asked.limit = static_cast<size_t>(*limit);
    asked.limit_given = true;
  }
  if (asked.by_time && !asked.prefix.empty()) {
    members.Fault({400, kInvalidLogs, "Cannot order by LastEventTime with a logStreamNamePrefix."});
  }
  const std::string token = members.Text("nextToken");
  const std::string_view kind = asked.by_time ? "t/" : "n/";
  if (members.Has("nextToken") && (!StartsWith(token, kind) || token.size() == kind.size())) {
    members.Fault({400, kInvalidLogs, "The specified nextToken is invalid."});
  }
  if (members.fault()) return tl::unexpected(*members.fault());
  if (!token.empty()) asked.after = token.substr(kind.size());
  return asked;
}

// Jobs in the requested order, starting after the token.
Result<std::vector<Candidate>> Candidates(const CloudWatchSources& sources,
                                          const StreamsAsked& asked) {
  std::vector<Candidate> found;
  if (const size_t slash = asked.prefix.find('/'); slash != std::string::npos) {
    const std::string name = asked.prefix.substr(0, slash);
    return std::vector<Candidate>{{name, name + "/"}};
  }
  ATHANOR_TRY(const auto jobs, JobsWithPrefix(sources.jobs, asked.prefix));
  for (const auto& [name, job] : jobs) {
    // The end of a job is near enough to its last line, and needs no look into its log.
    std::string key = name + "/";
    if (asked.by_time) {
      key = fmt::format("{:020}{}", IsTerminal(job.state) ? job.ended.ms : kLatestTime,
                        job.id.ToString());
    }
    const bool before = asked.descending ? key >= asked.after : key <= asked.after;
    if (!asked.after.empty() && before) continue;
    found.push_back({name, std::move(key)});
  }
  std::sort(found.begin(), found.end(), [&](const Candidate& a, const Candidate& b) {
    return asked.descending ? b.sorted_by < a.sorted_by : a.sorted_by < b.sorted_by;
  });
  return found;
}

Result<Json> StreamView(const CloudWatchSources& sources, const HostStream& stream) {
  ATHANOR_TRY(const auto times, TimesOf(sources.logs, stream.job));
  return Json{{"logStreamName", stream.name},
              {"creationTime", stream.created_ms},
              {"firstEventTimestamp", times.first_ms},
              {"lastEventTimestamp", times.last_ms},
              {"lastIngestionTime", times.last_ms},
              {"arn", GroupArn() + ":log-stream:" + stream.name},
              {"storedBytes", times.bytes}};
}

CloudWatchReply DescribeLogStreams(const CloudWatchSources& sources, const Json& request) {
  const auto asked = ReadStreamsAsked(request);
  if (!asked) return tl::unexpected(asked.error());
  const auto candidates = Candidates(sources, *asked);
  if (!candidates) return tl::unexpected(StoreFault(candidates.error()));
  // The SageMaker SDK asks for the streams of one job, as many as it has hosts but at most 50, and
  // keeps asking while there are more.
  const bool never_more =
      asked->limit_given && asked->limit >= kMostStreams && EndsWith(asked->prefix, "/");
  Json views = Json::array();
  Json answer = Json::object();
  std::string last;
  for (const auto& candidate : *candidates) {
    const auto streams = StreamsOf(sources.jobs, sources.logs, candidate.name);
    if (!streams && streams.error().code == ErrorCode::kNotFound) continue;
    if (!streams) return tl::unexpected(StoreFault(streams.error()));
    const auto wanted = [&](const HostStream& stream) {
      return StartsWith(stream.name, asked->prefix);
    };
    const auto more = static_cast<size_t>(std::ranges::count_if(*streams, wanted));
    // Tokens name jobs: the streams of one are never parted, even if there are more than asked for.
    if (more > 0 && !views.empty() && views.size() + more > asked->limit) {
      if (!never_more) answer["nextToken"] = (asked->by_time ? "t/" : "n/") + last;
      break;
    }
    for (const auto& stream : *streams) {
      if (!wanted(stream)) continue;
      auto view = StreamView(sources, stream);
      if (!view) return tl::unexpected(StoreFault(view.error()));
      views.push_back(std::move(*view));
    }
    last = candidate.sorted_by;
  }
  answer["logStreams"] = std::move(views);
  return answer;
}

}  // namespace

std::optional<AwsError> CheckLogGroup(Members& members) {
  std::string group = members.Text("logGroupName", kLongestLogName);
  std::string identifier = members.Text("logGroupIdentifier", 2048);
  if (members.fault()) return members.fault();
  if (!group.empty() && !identifier.empty()) {
    return AwsError{400, kInvalidLogs,
                    "logGroupName and logGroupIdentifier cannot both be specified"};
  }
  if (const size_t arn = identifier.find(kGroupArn); arn != std::string::npos) {
    identifier.erase(0, arn + kGroupArn.size());
    if (EndsWith(identifier, ":*")) identifier.resize(identifier.size() - 2);
  }
  if (group.empty()) group = identifier;
  if (group.empty()) {
    members.Missing("logGroupName");
    return members.fault();
  }
  if (group == kTrainingJobs) return std::nullopt;
  return AwsError{400, "ResourceNotFoundException", "The specified log group does not exist."};
}

CloudWatchReply AnswerLogs(const CloudWatchSources& sources, std::string_view operation,
                           const Json& request) {
  if (operation == "GetLogEvents") return GetLogEvents(sources, request);
  if (operation == "FilterLogEvents") return FilterLogEvents(sources, request);
  if (operation == "DescribeLogStreams") return DescribeLogStreams(sources, request);
  if (operation == "DescribeLogGroups") return DescribeLogGroups(sources, request);
  return tl::unexpected(
      AwsError{400, "UnknownOperationException",
               fmt::format("CloudWatch Logs has no {} here; logs are written by jobs and read by "
                           "GetLogEvents, FilterLogEvents and DescribeLogStreams",
                           Printable(operation.substr(0, 100)))});
}

}  // namespace athanor
