// GetLogEvents and FilterLogEvents.
#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/cloudwatch/filter_pattern.h"
#include "door/cloudwatch/log_pages.h"
#include "door/cloudwatch/log_streams.h"
#include "door/cloudwatch/logs.h"

namespace athanor {
namespace {

constexpr int64_t kMostEvents = 10'000;
constexpr size_t kMostNames = 100;
constexpr size_t kMostBytes = 1 << 20;      // of one answer
constexpr size_t kMostSearched = 16 << 20;  // bytes of logs, for one answer
constexpr size_t kMostStreamsSearched = 1000;
constexpr int64_t kDayMs = 86'400'000;

AwsError NoStream() {
  return {400, "ResourceNotFoundException", "The specified log stream does not exist."};
}

AwsError BadToken() { return {400, kInvalidLogs, "The specified nextToken is invalid."}; }

AwsError FaultOf(const Error& error) {
  return error.code == ErrorCode::kNotFound ? NoStream() : StoreFault(error);
}

// The window and the limit, which both operations have.
void ReadWindow(Members& members, LogPageWant& want) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  want.start_ms = members.Number("startTime", 0, kMost).value_or(0);
  want.end_ms = members.Number("endTime", 0, kMost).value_or(kMost);
  want.limit = static_cast<size_t>(members.Number("limit", 1, kMostEvents).value_or(kMostEvents));
  if (want.start_ms > want.end_ms) {
    members.Fault({400, kInvalidLogs, "endTime must be greater than or equal to startTime"});
  }
}

Json EventView(const LogEvent& event) {
  return {{"timestamp", event.time_ms}, {"message", event.text}, {"ingestionTime", event.time_ms}};
}

struct Token {
  bool forward = true;
  LogPosition position;
};

std::optional<Token> ParseToken(std::string_view text) {
  if (!StartsWith(text, "f/") && !StartsWith(text, "b/")) return std::nullopt;
  const auto position = LogPosition::Parse(text.substr(2));
  if (!position) return std::nullopt;
  return Token{text.front() == 'f', *position};
}

Result<LogPage> ReadPage(const LogStore& logs, const LogPageWant& want,
                         const std::optional<Token>& token, bool from_head) {
  if (token && token->forward) return PageFrom(logs, want, token->position);
  if (token) return PageBefore(logs, want, token->position);
  if (!from_head) return PageBefore(logs, want, std::nullopt);
  ATHANOR_TRY(const auto start, PositionSince(logs, want.job, want.start_ms));
  return PageFrom(logs, want, start);
}

// What FilterLogEvents looks through, in the order of jobs.
struct Searched {
  WallTime created;
  JobId job;
  std::string name;  // of the stream; empty: those of `called`
  std::string called;
  uint32_t host = 0;  // of the stream

  auto Order() const { return std::tie(created, job, host); }
  // Whether a page that continues at `next` has it behind it.
  bool IsBefore(const Searched& next) const {
    return std::tie(created, job) < std::tie(next.created, next.job) ||
           (job == next.job && !name.empty() && host < next.host);
  }
  // "1763260000000.<job>/<position>", of the second host "1763260000000.<job>-1/<position>"
  std::string TokenAt(const LogPosition& position, uint32_t of_host) const {
    return fmt::format("{}.{}{}/{}", created.ms, job.ToString(),
                       of_host == 0 ? "" : fmt::format("-{}", of_host), position.ToString());
  }
};

struct SearchAsked {
  std::vector<std::string> names;
  std::string prefix;
  LogPageWant want;
  FilterPattern pattern;
  std::optional<Searched> resumed;  // a token: continue with this job ...
  LogPosition from;                 // ... here
};

bool ReadSearchToken(std::string_view token, SearchAsked& asked) {
  const size_t dot = token.find('.');
  const size_t slash = token.find('/');
  if (dot == std::string_view::npos || slash == std::string_view::npos || slash < dot) return false;
  Searched resumed;
  const char* end = token.data() + dot;
  const auto [at, error] = std::from_chars(token.data(), end, resumed.created.ms);
  const auto whose = token.substr(dot + 1, slash - dot - 1);
  const auto job = JobId::Parse(whose.substr(0, whose.find('-')));
  const auto position = LogPosition::Parse(token.substr(slash + 1));
  if (error != std::errc() || at != end || !job || !position) return false;
  if (const size_t dash = whose.find('-'); dash != std::string_view::npos) {
    const char* whose_end = whose.data() + whose.size();
    const auto host = std::from_chars(whose.data() + dash + 1, whose_end, resumed.host);
    if (host.ec != std::errc() || host.ptr != whose_end) return false;
  }
  resumed.job = *job;
  asked.resumed = std::move(resumed);
  asked.from = *position;
  return true;
}

tl::expected<SearchAsked, AwsError> ReadSearchAsked(const Json& request) {
  Members members(request, kInvalidLogs);
  if (auto group = CheckLogGroup(members)) return tl::unexpected(*group);
  SearchAsked asked;
  asked.names = members.Texts("logStreamNames", kMostNames);
  asked.prefix = members.Text("logStreamNamePrefix", 512);
  if (!asked.names.empty() && !asked.prefix.empty()) {
    members.Fault(
        {400, kInvalidLogs, "logStreamNames and logStreamNamePrefix are mutually exclusive"});
  }
  ReadWindow(members, asked.want);
  auto pattern = FilterPattern::Parse(members.Text("filterPattern"));
  if (pattern) {
    asked.pattern = std::move(*pattern);
  } else {
    members.Fault({400, kInvalidLogs, pattern.error().what});
  }
  if (members.Has("nextToken") && !ReadSearchToken(members.Text("nextToken"), asked)) {
    members.Fault(BadToken());
  }
  if (members.fault()) return tl::unexpected(*members.fault());
  return asked;
}

// kNotFound: a stream was named that is none.
Result<std::vector<Searched>> ToSearch(const CloudWatchSources& sources, const SearchAsked& asked) {
  std::vector<Searched> found;
  for (const auto& name : asked.names) {
    ATHANOR_TRY(const auto stream, FindStream(sources.jobs, sources.logs, name));
    found.push_back({stream.job_created, stream.job, stream.name, {}, stream.host});
  }
  if (const size_t slash = asked.prefix.find('/'); slash != std::string::npos) {
    const std::string called = asked.prefix.substr(0, slash);
    const auto record = JobCalled(sources.jobs, called);
    if (record) found.push_back({record->created, record->id, {}, called});
    if (!record && record.error().code != ErrorCode::kNotFound) {
      return tl::unexpected(record.error());
    }
  } else if (asked.names.empty()) {
    ATHANOR_TRY(const auto jobs, JobsWithPrefix(sources.jobs, asked.prefix));
    for (const auto& [name, job] : jobs) {
      // Clocks of machines differ, but not by days.
      const bool earlier = IsTerminal(job.state) && job.ended.ms + kDayMs < asked.want.start_ms;
      if (!earlier && job.created.ms - kDayMs < asked.want.end_ms) {
        found.push_back({job.created, job.id, {}, name});
      }
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Searched& a, const Searched& b) { return a.Order() < b.Order(); });
  found.erase(std::unique(found.begin(), found.end(),
                          [](const Searched& a, const Searched& b) {
                            return a.job == b.job && a.host == b.host;
                          }),
              found.end());
  return found;
}

Result<std::vector<HostStream>> StreamsIn(const CloudWatchSources& sources,
                                          const Searched& searched) {
  if (searched.name.empty()) return StreamsOf(sources.jobs, sources.logs, searched.called);
  ATHANOR_TRY(auto stream, FindStream(sources.jobs, sources.logs, searched.name));
  return std::vector<HostStream>{std::move(stream)};
}

void AddFound(const HostStream& stream, const LogPage& page, Json& events) {
  for (const auto& event : page.events) {
    Json view = {{"logStreamName", stream.name}};
    view.update(EventView(event));
    view["eventId"] =
        fmt::format("{}{:012}{:06}", stream.job.ToString(), event.entry, event.number);
    events.push_back(std::move(view));
  }
}

}  // namespace

CloudWatchReply GetLogEvents(const CloudWatchSources& sources, const Json& request) {
  Members members(request, kInvalidLogs);
  if (auto group = CheckLogGroup(members)) return tl::unexpected(*group);
  const std::string name = members.RequiredText("logStreamName", 512);
  LogPageWant want;
  ReadWindow(members, want);
  const bool from_head = members.Flag("startFromHead", false);
  const std::string given = members.Text("nextToken");
  const auto token = ParseToken(given);
  if (members.Has("nextToken") && !token) members.Fault(BadToken());
  if (members.fault()) return tl::unexpected(*members.fault());

  const auto stream = FindStream(sources.jobs, sources.logs, name);
  if (!stream) return tl::unexpected(FaultOf(stream.error()));
  want.job = stream->job;
  want.host = stream->host;
  want.over = stream->over;
  const auto page = ReadPage(sources.logs, want, token, from_head);
  if (!page) return tl::unexpected(FaultOf(page.error()));

  Json events = Json::array();
  for (const auto& event : page->events) events.push_back(EventView(event));
  std::string forward = "f/" + page->after.ToString();
  std::string backward = "b/" + page->before.ToString();
  // The same token again: this is how clients know that they are at the end.
  if (page->events.empty() && token) {
    (token->forward ? forward : backward) = given;
    (token->forward ? backward : forward) = (token->forward ? "b/" : "f/") + given.substr(2);
  }
  return Json{{"events", std::move(events)},
              {"nextForwardToken", std::move(forward)},
              {"nextBackwardToken", std::move(backward)}};
}

CloudWatchReply FilterLogEvents(const CloudWatchSources& sources, const Json& request) {
  const auto asked = ReadSearchAsked(request);
  if (!asked) return tl::unexpected(asked.error());
  const auto to_search = ToSearch(sources, *asked);
  if (!to_search) return tl::unexpected(FaultOf(to_search.error()));
  Json events = Json::array();
  Json answer = Json::object();
  size_t bytes = 0;
  size_t read = 0;
  size_t looked_at = 0;
  for (const auto& searched : *to_search) {
    if (asked->resumed && searched.IsBefore(*asked->resumed)) continue;
    const bool same_job = asked->resumed && searched.job == asked->resumed->job;
    const auto full = [&] {
      return read >= kMostSearched || bytes >= kMostBytes || events.size() >= asked->want.limit;
    };
    if (full() || ++looked_at > kMostStreamsSearched) {
      answer["nextToken"] = searched.TokenAt({}, searched.host);
      break;
    }
    const auto streams = StreamsIn(sources, searched);
    if (!streams && streams.error().code == ErrorCode::kNotFound) continue;  // removed meanwhile
    if (!streams) return tl::unexpected(StoreFault(streams.error()));
    for (const auto& stream : *streams) {
      if (!StartsWith(stream.name, asked->prefix)) continue;
      if (same_job && stream.host < asked->resumed->host) continue;
      if (full()) {
        answer["nextToken"] = searched.TokenAt({}, stream.host);
        break;
      }
      const bool resumed =
          same_job && stream.host == asked->resumed->host && asked->from != LogPosition{};
      LogPageWant want = asked->want;
      want.job = stream.job;
      want.host = stream.host;
      want.over = stream.over;
      want.limit -= events.size();
      want.bytes = kMostBytes - bytes;
      want.most_read = kMostSearched - read;
      want.wanted = [&](std::string_view text) { return asked->pattern.Matches(text); };
      auto start = resumed ? Result<LogPosition>(asked->from)
                           : PositionSince(sources.logs, stream.job, want.start_ms);
      const auto page = start ? PageFrom(sources.logs, want, *start)
                              : Result<LogPage>(tl::unexpected(start.error()));
      if (!page && page.error().code == ErrorCode::kNotFound) continue;
      if (!page) return tl::unexpected(StoreFault(page.error()));
      AddFound(stream, *page, events);
      bytes += page->bytes;
      read += page->read;
      if (!page->more) continue;
      answer["nextToken"] = searched.TokenAt(page->after, stream.host);
      break;
    }
    if (answer.contains("nextToken")) break;
  }
  answer["events"] = std::move(events);
  answer["searchedLogStreams"] = Json::array();
  return answer;
}

}  // namespace athanor
