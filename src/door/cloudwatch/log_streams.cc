#include "door/cloudwatch/log_streams.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kHostPrefix = "algo-";

tl::unexpected<Error> NoSuch(std::string_view what) {
  return Fail(ErrorCode::kNotFound, "no " + Printable(what.substr(0, 200)));
}

// Reads all of `text` as a number without a sign.
template <class T>
bool ReadNumber(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && text.front() != '-';
}

int64_t StartOf(const JobRecord& record) {
  return record.attempts.empty() ? 0 : record.attempts.front().placed.ms;
}

// Every job, newest first.
Result<std::vector<JobSummary>> AllJobs(const JobStore& jobs) {
  JobQuery query;
  query.limit = std::numeric_limits<int64_t>::max();
  return jobs.List(query);
}

// Of any attempt.
uint32_t HostsOf(const JobRecord& record) {
  size_t most = record.attempts.empty() ? 0 : 1;
  for (const auto& attempt : record.attempts) most = std::max(most, attempt.hosts.size());
  return static_cast<uint32_t>(most);
}

Result<HostStream> StreamOf(const LogStore& logs, const JobRecord& record, std::string_view called,
                            uint32_t host) {
  if (host >= HostsOf(record)) return NoSuch("log stream of this job");
  ATHANOR_TRY(const auto end, logs.Tail(record.id, 0));
  if (end.entry == 0) return NoSuch("log of this job");
  const StreamName name{std::string(called), host, StartOf(record)};
  return HostStream{name.ToString(),          record.id,     host,
                    IsTerminal(record.state), name.start_ms, record.created};
}

}  // namespace

Result<JobRecord> JobCalled(const JobStore& jobs, std::string_view name) {
  const auto id = jobs.Resolve(name);
  if (!id) {
    const auto code = id.error().code;
    const bool none =
        code == ErrorCode::kNotFound || code == ErrorCode::kConflict || code == ErrorCode::kInvalid;
    if (none) return NoSuch(name);
    return tl::unexpected(id.error());
  }
  ATHANOR_TRY(auto record, jobs.Find(*id));
  if (record.spec.name == name || record.id.ToString() == name) return record;
  // References are wider than names: this was part of an id.
  ATHANOR_TRY(const auto all, AllJobs(jobs));
  for (const auto& job : all) {
    if (job.name == name) return jobs.Find(job.id);
  }
  return NoSuch(name);
}

Result<std::vector<NamedJob>> JobsWithPrefix(const JobStore& jobs, std::string_view prefix) {
  ATHANOR_TRY(auto all, AllJobs(jobs));
  std::vector<NamedJob> found;
  std::set<std::string, std::less<>> names;
  for (auto& job : all) {
    const bool newest = names.insert(job.name).second;
    std::string name = newest ? job.name : job.id.ToString();
    if (StartsWith(name, prefix)) found.push_back({std::move(name), std::move(job)});
  }
  return found;
}

std::string StreamName::ToString() const {
  return fmt::format("{}/{}{}-{}", job, kHostPrefix, host + 1, start_ms);
}

std::optional<StreamName> StreamName::Parse(std::string_view text) {
  StreamName name;
  const size_t slash = text.rfind('/');
  if (slash == std::string_view::npos || slash == 0) return std::nullopt;
  name.job = text.substr(0, slash);
  text.remove_prefix(slash + 1);
  if (!StartsWith(text, kHostPrefix)) return std::nullopt;
  text.remove_prefix(kHostPrefix.size());
  const size_t dash = text.find('-');
  if (dash == 0 || dash == std::string_view::npos || dash + 1 == text.size()) return std::nullopt;
  if (!ReadNumber(text.substr(0, dash), name.host) || name.host == 0) return std::nullopt;
  if (!ReadNumber(text.substr(dash + 1), name.start_ms)) return std::nullopt;
  --name.host;
  return name;
}

Result<HostStream> FindStream(const JobStore& jobs, const LogStore& logs, std::string_view name) {
  const auto parsed = StreamName::Parse(name);
  if (!parsed) return NoSuch(name);
  ATHANOR_TRY(auto record, JobCalled(jobs, parsed->job));
  if (StartOf(record) != parsed->start_ms) {
    // A stream that was found before another job took the name.
    ATHANOR_TRY(const auto all, AllJobs(jobs));
    bool found = false;
    for (const auto& job : all) {
      if (job.name != parsed->job || found) continue;
      ATHANOR_TRY(record, jobs.Find(job.id));
      found = StartOf(record) == parsed->start_ms;
    }
    if (!found) return NoSuch(name);
  }
  return StreamOf(logs, record, parsed->job, parsed->host);
}

Result<std::vector<HostStream>> StreamsOf(const JobStore& jobs, const LogStore& logs,
                                          std::string_view name) {
  ATHANOR_TRY(const auto record, JobCalled(jobs, name));
  std::vector<HostStream> streams;
  for (uint32_t host = 0; host < HostsOf(record); ++host) {
    auto stream = StreamOf(logs, record, name, host);
    if (!stream && stream.error().code == ErrorCode::kNotFound) break;
    if (!stream) return tl::unexpected(std::move(stream).error());
    streams.push_back(std::move(*stream));
  }
  return streams;
}

Result<StreamTimes> TimesOf(const LogStore& logs, JobId job) {
  StreamTimes times;
  ATHANOR_TRY(times.bytes, logs.Bytes(job));
  ATHANOR_TRY(const auto end, logs.Tail(job, 0));
  LogCursor cursor;
  ATHANOR_TRY(const auto first, logs.Read(job, cursor, 1));
  if (!first.empty()) times.first_ms = times.last_ms = first.front().wall_ms;
  // The last entry may be void; then what is before it is near enough.
  for (uint64_t back = 1; back <= 8 && back <= end.entry; back *= 2) {
    cursor.entry = end.entry - back;
    ATHANOR_TRY(const auto last, logs.Read(job, cursor, 1 << 20));
    if (last.empty()) continue;
    times.last_ms = std::max(times.first_ms, last.back().wall_ms);
    break;
  }
  return times;
}

}  // namespace athanor
