#include "door/native/views.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/json_writer.h"
#include "door/native/hosts_view.h"
#include "job/causes.h"
#include "job/codec.h"
#include "job/command.h"
#include "job/rules.h"
#include "job/shown.h"
#include "record/jobs/job_summary.h"
#include "steer/hub.h"
#include "submit/notes.h"

namespace athanor {
namespace {

constexpr size_t kLastEvents = 64;

Json Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// Lists of ten thousand jobs are built as text: no tree of nodes in between.
void AppendRow(std::string& out, const JobSummary& job, std::string_view shown,
               std::string_view cause_kind, std::string_view cause_text) {
  out += "{\"id\":\"";
  out += job.id.ToString();
  out += "\",\"name\":";
  AppendJsonText(out, job.name);
  out += ",\"state\":\"";
  out += NameOf(job.state);
  out += "\",\"shown_state\":\"";
  out += shown;
  out += "\",\"experiment\":";
  AppendJsonText(out, job.experiment);
  out += ",\"user\":";
  AppendJsonText(out, job.user);
  auto time = [&out](const char* key, WallTime at) {
    if (at.ms == 0) return;
    out += ",\"";
    out += key;
    out += "\":\"";
    out += Rfc3339(at);
    out += '"';
  };
  time("created", job.created);
  time("started", job.started);
  time("ended", job.ended);
  if (!cause_kind.empty()) {
    out += ",\"cause\":{\"kind\":";
    AppendJsonText(out, cause_kind);
    out += ",\"text\":";
    AppendJsonText(out, cause_text);
    out += '}';
  }
  const auto [ranks, type] = PartsOfType(job.type);
  if (!type.empty()) {
    out += ",\"type\":";
    AppendJsonText(out, type);
  }
  if (!ranks.empty()) {
    out += ",\"ranks\":";
    AppendJsonText(out, ranks);
  }
  out += ",\"command\":";
  AppendJsonText(out, job.command);
  out += ",\"attempts\":" + std::to_string(job.attempts);
  out += ",\"cost_micros\":" + std::to_string(job.cost_micros);
  out += job.simulated ? ",\"simulated\":true}" : ",\"simulated\":false}";
}

// What being taken away cost and saved; null for a job that never was and never may be.
Json SpotView(const JobRecord& record) {
  if (!record.spec.resources.spot.use && record.attempts.size() < 2) return nullptr;
  int64_t held = 0;
  int64_t setup = 0;
  int64_t lost = 0;
  for (const auto& attempt : record.attempts) {
    held += attempt.held_ms;
    setup += attempt.setup_ms;
    lost += attempt.lost_ms;
  }
  JobRecord ordinary = record;  // the same time at the ordinary price
  for (auto& attempt : ordinary.attempts) {
    if (attempt.type.empty()) attempt.micros_per_hour = -1;
  }
  return {{"held_ms", held},
          {"training_ms", std::max<int64_t>(held - setup - lost, 0)},
          {"lost_ms", lost},
          {"restarts", record.attempts.empty() ? 0 : record.attempts.size() - 1},
          {"saved_micros", CostMicros(ordinary) - CostMicros(record)},
          {"on_demand_micros", CostMicros(ordinary)}};
}

// The hosts as the record has them, and how each is; and what failed first.
void AddHosts(const JobRecord& record, WallTime now, Json& out) {
  if (!out.contains("attempts")) return;
  const bool gang = IsGang(record);
  for (size_t i = 0; i < record.attempts.size(); ++i) {
    const auto& attempt = record.attempts[i];
    Json& view = out["attempts"][i];
    for (size_t host = 0; host < attempt.hosts.size(); ++host) {
      Json& shown = view["hosts"][host];
      shown["state"] = std::string(HostState(attempt, attempt.hosts[host], now));
      if (gang) shown["rank_text"] = HostRanks(record.spec, attempt, static_cast<uint32_t>(host));
    }
    if (!gang) continue;
    if (auto order = FallOrder(attempt); !order.empty()) view["fall_order"] = std::move(order);
    if (FirstFailure(attempt) == nullptr) view.erase("fell");
  }
}

// Rfc3339 for many times that are near each other: within a second only the fraction differs.
class TimeText {
 public:
  const std::string& Of(int64_t ms) {
    if (ms < 0 || text_.empty() || ms / 1000 != second_) {
      text_ = Rfc3339({ms});
      second_ = ms < 0 ? -1 : ms / 1000;
      return text_;
    }
    const auto fraction = static_cast<int>(ms % 1000);
    const size_t at = text_.size() - 4;  // "120Z"
    text_[at] = static_cast<char>('0' + fraction / 100);
    text_[at + 1] = static_cast<char>('0' + fraction / 10 % 10);
    text_[at + 2] = static_cast<char>('0' + fraction % 10);
    return text_;
  }

 private:
  int64_t second_ = -1;
  std::string text_;
};

}  // namespace

Json AcceptedView(const DoorContext& context, const JobRecord& record) {
  Json out = Json::object();
  out["id"] = record.id.ToString();
  out["name"] = record.spec.name;
  out["state"] = std::string(NameOf(record.state));
  out["shown_state"] = std::string(ShownState(record, context.clock.Wall()));
  if (record.simulated) out["simulated"] = true;
  if (!record.same_as.empty()) out["same_as"] = record.same_as;
  return out;
}

JobNumbers ReadNumbers(const DoorContext& context, const JobRecord& record) {
  JobNumbers numbers;
  if (auto metrics = context.series.Summaries(record.id, ResumesOf(record))) {
    numbers.metrics = std::move(*metrics);
  }
  if (auto bytes = context.logs.Bytes(record.id)) numbers.log_bytes = *bytes;
  numbers.unread = ReadUnread(context, record);
  return numbers;
}

std::vector<UnreadParam> ReadUnread(const DoorContext& context, const JobRecord& record) {
  if (record.spec.params.empty()) return {};
  // The agent says it with the end of an attempt.
  const uint64_t after = record.event_seq > kLastEvents ? record.event_seq - kLastEvents : 0;
  const auto last = context.jobs.Events(record.id, after, kLastEvents);
  return last ? UnreadParams(record, *last) : std::vector<UnreadParam>();
}

namespace {

// Parameters that the script did not read; null: it did, or it is unknown.
Json UnreadView(const std::vector<UnreadParam>& unread) {
  if (unread.empty()) return nullptr;
  Json params = Json::array();
  for (const auto& param : unread) {
    params.push_back(
        {{"name", param.name}, {"value", param.value}, {"mark", UnreadMark(param.sure)}});
  }
  return {
      {"text", UnreadText(unread)}, {"hint", UnreadHint(unread)}, {"params", std::move(params)}};
}

// Rules that could not fire, once it is known that they will not; null: there are none.
Json UnseenRulesView(const JobRecord& record, const std::vector<SeriesSummary>& metrics) {
  const bool ran = std::any_of(record.attempts.begin(), record.attempts.end(),
                               [](const Attempt& attempt) { return attempt.exit.has_value(); });
  if (record.spec.rules.empty() || !ran || !IsTerminal(record.state)) return nullptr;
  std::vector<std::string> logged;
  for (const auto& metric : metrics) logged.push_back(metric.name);
  const auto texts = RulesWithoutMetric(record.spec.rules, logged);
  return texts.empty() ? Json() : Json(texts);
}

}  // namespace

Json JobView(const DoorContext& context, const JobRecord& record, const LiveStats* stats,
             const JobNumbers& numbers) {
  Json out = ToJson(record);
  out.erase("key");
  out["name"] = record.spec.name;
  const WallTime now = context.clock.Wall();
  out["shown_state"] = std::string(ShownState(record, now));
  if (const WallTime started = FirstStarted(record); started.ms != 0) {
    out["started"] = Rfc3339(started);
  }
  const Cause cause = ShownCause(record, now);
  if (cause != record.cause) out["cause"] = ToJson(cause);
  AddHosts(record, now, out);
  if (auto notes = NotesAbout(record.spec.resources, context.inventory); !notes.empty()) {
    out["notes"] = std::move(notes);
  }
  out["command_line"] = CommandLine(record.spec);
  if (Json unread = UnreadView(numbers.unread); !unread.is_null())
    out["unread"] = std::move(unread);
  if (Json unseen = UnseenRulesView(record, numbers.metrics); !unseen.is_null()) {
    out["rules_without_metric"] = std::move(unseen);
  }
  out["cost_micros"] = CostMicros(record);
  if (Json spot = SpotView(record); !spot.is_null()) out["spot"] = std::move(spot);
  if (const auto* row = FindCause(cause.kind)) {
    out["cause"]["code"] = std::string(row->code);
    out["cause"]["title"] = std::string(row->title);
  }
  if (!numbers.metrics.empty()) out["metrics"] = MetricsView(numbers.metrics);
  if (stats && stats->usage) {
    out["usage"] = {{"cpu_percent", stats->usage->cpu_percent},
                    {"memory_bytes", stats->usage->memory_bytes},
                    {"memory_peak", stats->usage->memory_peak}};
  }
  if (stats && stats->progress) {
    out["progress"] = {{"done", stats->progress->done}, {"total", stats->progress->total}};
  }
  if (numbers.log_bytes) out["log_bytes"] = *numbers.log_bytes;
  return out;
}

std::string SummaryView(const DoorContext& context, const JobRecord& record) {
  const WallTime now = context.clock.Wall();
  const Cause cause = ShownCause(record, now);
  std::string out;
  AppendRow(out, SummaryOf(record), ShownState(record, now), cause.kind, cause.text);
  return out;
}

std::vector<ListedJob> AsShown(const DoorContext& context, std::vector<JobSummary> jobs) {
  std::vector<ListedJob> rows;
  rows.reserve(jobs.size());
  const WallTime now = context.clock.Wall();
  for (auto& job : jobs) {
    auto& row = rows.emplace_back(ListedJob{std::move(job), {}});
    row.shown = NameOf(row.job.state);
    if (IsTerminal(row.job.state)) continue;
    // An end counts when it is stored.
    const auto* live = context.engine.Live(row.job.id);
    if (live == nullptr || IsTerminal(live->state)) continue;
    const Cause cause = ShownCause(*live, now);
    row.shown = ShownState(*live, now);
    row.job.cause_kind = cause.kind;
    row.job.cause_text = cause.text;
  }
  return rows;
}

std::string ListView(const std::vector<ListedJob>& rows) {
  std::string out;
  out.reserve(rows.size() * 400 + 64);
  out += "{\"jobs\":[";
  bool first = true;
  for (const auto& row : rows) {
    if (!first) out += ',';
    first = false;
    AppendRow(out, row.job, row.shown, row.job.cause_kind, row.job.cause_text);
  }
  out += "]}";
  return out;
}

Json MetricsView(const std::vector<SeriesSummary>& summaries) {
  Json all = Json::array();
  for (const auto& summary : summaries) {
    Json row = Json::object();
    row["name"] = summary.name;
    row["count"] = summary.count;
    row["last"] = Number(summary.last);
    if (summary.last_step) row["last_step"] = *summary.last_step;
    row["last_time"] = Rfc3339({summary.last_wall_ns / 1'000'000});
    row["min"] = Number(summary.min);
    row["max"] = Number(summary.max);
    all.push_back(std::move(row));
  }
  return all;
}

std::string PointsView(const std::string& name, const std::vector<SeriesPoint>& points) {
  std::string out;
  out.reserve(points.size() * (80 + name.size()));
  std::string quoted;
  AppendJsonText(quoted, name);
  TimeText time;
  for (const auto& point : points) {
    JsonWriter json(out);
    json.BeginObject();
    json.Key("name");
    json.Raw(quoted);
    if (point.step) json.Int("step", *point.step);
    json.Double("value", point.value);
    json.Text("time", time.Of(point.wall_ns / 1'000'000));
    if (point.attempt != 1) json.Int("attempt", point.attempt);
    if (point.abandoned) {
      json.Key("abandoned");
      json.Bool(true);
    }
    if (point.guessed) {
      json.Key("guessed");
      json.Bool(true);
    }
    json.EndObject();
    out += '\n';
  }
  return out;
}

}  // namespace athanor
