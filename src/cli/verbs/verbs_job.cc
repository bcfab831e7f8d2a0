// show, why, metrics, events: what is known of jobs.
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "cli/attach.h"
#include "cli/client.h"
#include "cli/lost_server.h"
#include "cli/metrics_follow.h"
#include "cli/screen/hosts.h"
#include "cli/screen/output.h"
#include "cli/screen/plot.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "job/record.h"
#include "net/http/sse.h"
#include "price/price.h"

namespace athanor {
namespace {

std::string GpusText(const Json& placement) {
  std::vector<std::string> devices;
  for (const auto& device : placement.value("gpus", Json::array())) {
    devices.push_back(DumpJson(device));
  }
  return devices.empty() ? AutoGpusText(placement) : Join(devices, ",") + " (reserved)";
}

// "max_runtime 2 h  stop_grace 2 m": what is not as it is for everyone.
std::string AskedLimits(const Json& spec) {
  std::vector<std::string> limits;
  const auto add_span = [&](const Json& from, const char* key, const char* name) {
    if (Number(from, key) > 0)
      limits.push_back(name + (" " + HumanDuration(Millis(Number(from, key)))));
  };
  const auto given = spec.value("limits", Json::object());
  add_span(given, "max_runtime_ms", "max_runtime");
  add_span(given, "stop_grace_ms", "stop_grace");
  add_span(given, "lost_after_ms", "lost_after");
  add_span(given, "hang_after_ms", "hang_after");
  if (Number(given, "log_bytes") > 0) {
    limits.push_back("log " + HumanBytes(static_cast<uint64_t>(Number(given, "log_bytes"))));
  }
  const auto retry = spec.value("retry", Json::object());
  if (Number(retry, "max") > 0) limits.push_back(fmt::format("retries {}", Number(retry, "max")));
  return Join(limits, "  ");
}

std::string ResourcesText(const Json& r) {
  std::string asked = Text(r, "type");
  if (Number(r, "cpu_millis") > 0)
    asked += fmt::format(" {} CPUs", Number(r, "cpu_millis") / 1000.0);
  if (Number(r, "memory_bytes") > 0) {
    asked += " " + HumanBytes(static_cast<uint64_t>(Number(r, "memory_bytes")));
  }
  if (Number(r, "gpus") > 0) asked += fmt::format(" {} GPUs", Number(r, "gpus"));
  if (r.value("spot", Json::object()).value("use", false)) asked += " spot";
  const auto ranks = RanksOf(r);
  if (!asked.empty() && Number(r, "nodes") > 1) asked += " per node";
  if (!ranks.empty()) asked += (asked.empty() ? "" : ", ") + ranks;
  return std::string(Trim(asked));
}

// What Python and packages it runs with.
std::string EnvironmentText(Client& client, const Json& job) {
  const auto given = job["spec"].value("environment", Json::object());
  std::vector<std::string> words;
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) words.push_back(label + Printable(value));
  };
  add("image ", Text(given, "image"));
  add("python ", Text(given, "python"));
  add("base ", Text(given, "base"));
  add("", Text(given, "requirements"));
  add("", Text(given, "conda"));
  if (job.contains("packages")) {
    const auto known = client.Get("/api/v1/jobs/" + Text(job, "id") + "/environment");
    if (known && !(*known)["packages"].empty()) {
      words.push_back(Counted((*known)["packages"].size(), "package"));
    }
  }
  return words.empty() ? "of the shell that submitted it" : Join(words, "  ");
}

// What it was given: the values of variables may be anybody's passwords, and are not shown.
void ShowAsked(Client& client, const Json& job) {
  const auto& spec = job["spec"];
  std::vector<std::string> tags;
  const auto given_tags = spec.value("tags", Json::object());
  for (const auto& [key, value] : given_tags.items())
    tags.push_back(key + "=" + value.get<std::string>());
  Field("tags", Printable(Join(tags, "  ")));
  std::vector<std::string> names;
  const auto given_env = spec.value("env", Json::object());
  for (const auto& [key, value] : given_env.items()) names.push_back(key);
  Field("env", Printable(Join(names, "  ")));
  names.clear();
  for (const auto& secret : spec.value("secrets", Json::array()))
    names.push_back(Text(secret, "name"));
  Field("secrets", Printable(Join(names, "  ")));
  Field("resources", ResourcesText(spec.value("resources", Json::object())));
  Field("limits", AskedLimits(spec));
  Field("environment", EnvironmentText(client, job));
}

void ShowAttempts(const Json& job, const Terminal& terminal) {
  for (const auto& attempt : job.value("attempts", Json::array())) {
    std::string line = fmt::format("#{}", Number(attempt, "number"));
    if (auto started = TimeOf(attempt, "started")) line += "  started " + Local(started);
    if (Number(attempt, "held_ms") > 0) {
      line += "  held " + HumanDuration(Millis(Number(attempt, "held_ms")));
      line += "  set-up " + HumanDuration(Millis(Number(attempt, "setup_ms")));
    }
    if (attempt.contains("exit")) {
      const auto& exit = attempt["exit"];
      if (Number(exit, "signal") != 0) {
        line += fmt::format("  signal {}", Number(exit, "signal"));
      } else if (Number(exit, "code") >= 0) {  // else nobody saw how it ended
        line += fmt::format("  exit {}", Number(exit, "code"));
      }
      if (Number(exit, "memory_peak") > 0) {
        line += "  peak " + HumanBytes(static_cast<uint64_t>(Number(exit, "memory_peak")));
      }
    }
    if (attempt.contains("resumed_from")) {
      line += "  from " + (attempt.contains("resumed_step")
                               ? fmt::format("step {}", Number(attempt, "resumed_step"))
                               : "checkpoint " + Text(attempt, "resumed_from"));
    }
    Field("attempt", line);
    if (attempt.contains("cause") && Text(attempt["cause"], "kind") == "preempted") {
      Field("  ended", Text(attempt["cause"], "text"));
    }
    std::fputs(HostsTable(job, attempt, terminal).c_str(), stdout);
    if (attempt.contains("placement")) Field("  gpus", GpusText(attempt["placement"]));
    Field("  limits", LimitsText(attempt));
    for (const auto& off : attempt.value("off", Json::array())) {
      if (StartsWith(off.get<std::string>(), kLimitsMark)) continue;
      Field("  off", off.get<std::string>());
    }
  }
}

// What interval is in force, why, and what it is expected to cost.
std::string AdviceText(const Json& advice) {
  const auto every = Number(advice, "every_ms");
  if (every <= 0) return "";
  const auto save = Number(advice, "save_ms");
  const auto mtbf = Number(advice, "mtbf_ms");
  std::string text =
      "every " + HumanDuration(Millis(every)) + ": a save takes " + HumanDuration(Millis(save));
  if (mtbf > 0) {
    // Saving once an interval, and redoing half of one at each loss.
    const double cost = static_cast<double>(save) / static_cast<double>(every) +
                        static_cast<double>(every) / 2 / static_cast<double>(mtbf);
    text += fmt::format(
        ", an interruption is expected every {} ({}); expected cost {:.1f} % of the time",
        HumanDuration(Millis(mtbf)), Text(advice, "source"), 100 * cost);
  }
  return text;
}

void ShowSurvival(const Json& job) {
  if (job.contains("spot")) {
    const auto& spot = job["spot"];
    auto span = [&](const char* key) { return HumanDuration(Millis(Number(spot, key))); };
    std::string line =
        fmt::format("{} restart{}, held {}, training {}, lost {}", Number(spot, "restarts"),
                    Number(spot, "restarts") == 1 ? "" : "s", span("held_ms"), span("training_ms"),
                    span("lost_ms"));
    if (Number(spot, "on_demand_micros") > 0) {
      line += fmt::format(", saved {} of {} ({:.0f} %)", HumanMoney(Number(spot, "saved_micros")),
                          HumanMoney(Number(spot, "on_demand_micros")),
                          100.0 * static_cast<double>(Number(spot, "saved_micros")) /
                              static_cast<double>(Number(spot, "on_demand_micros")));
    }
    Field("spot", line);
  }
  if (job.contains("advice")) Field("checkpoint", AdviceText(job["advice"]));
  for (const auto& firing : job.value("firings", Json::array())) {
    std::string line = Text(firing, "rule") + " on " + Printable(Text(firing, "metric"));
    if (firing.contains("step")) line += fmt::format(" at step {}", Number(firing, "step"));
    line += ": " + Text(firing, "value");
    if (!Text(firing, "threshold").empty()) line += " (limit " + Text(firing, "threshold") + ")";
    Field("rule", line + "  -> " + Text(firing, "action"));
    Field("  advice", Text(firing, "advice"));
  }
  for (const auto& unseen : job.value("rules_without_metric", Json::array())) {
    Field("note", unseen.get<std::string>());
  }
}

}  // namespace

int ShowVerb(const Common& common, const std::string& job, bool sagemaker) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/jobs/" + UrlEncode(job) + (sagemaker ? "/sagemaker" : ""));
  if (!body) return Refuse(body.error(), common.json);
  if (sagemaker && !common.json) {
    std::printf("%s\n", DumpJsonPretty(*body).c_str());
    return 0;
  }
  if (common.json) {
    std::printf("%s\n", DumpJson(*body).c_str());
    return 0;
  }
  auto terminal = DetectTerminal();
  const auto& spec = (*body)["spec"];
  auto state = Text(*body, "shown_state");
  std::printf("%s  %s  %s%s\n", Paint(terminal, Ink::kBold, Printable(Text(*body, "name"))).c_str(),
              Text(*body, "id").c_str(), Paint(terminal, InkOf(state), state).c_str(),
              body->value("simulated", false) ? "  (simulated)" : "");
  if (body->contains("cause")) Field("why", Text((*body)["cause"], "text"));
  for (const auto& note : spec.value("notes", Json::array())) {
    Field("note", Printable(note.get<std::string>()));
  }
  for (const auto& note : body->value("notes", Json::array())) {
    Field("note", Printable(note.get<std::string>()));
  }
  Field("command", Printable(Text(*body, "command_line")));
  Field("experiment", Text(spec, "experiment"));
  if (spec.contains("params")) {
    std::vector<std::string> params;
    for (const auto& param : spec["params"]) {
      params.push_back(Text(param, "name") + "=" + Text(param, "value"));
    }
    Field("params", Printable(Join(params, "  ")));
  }
  if (body->contains("unread")) {
    Field("  unread", Printable(Text((*body)["unread"], "text")) + "; " +
                          Printable(Text((*body)["unread"], "hint")));
  }
  ShowAsked(*client, *body);
  if (spec.contains("source")) {
    const auto& source = spec["source"];
    std::string line = Counted(static_cast<uint64_t>(Number(source, "files")), "file") + ", " +
                       HumanBytes(static_cast<uint64_t>(Number(source, "bytes")));
    if (!Text(source, "git_commit").empty()) {
      line += "  git " + Text(source, "git_commit").substr(0, 10);
      if (!Text(source, "git_diff").empty()) line += " with changes";
    }
    Field("source", line + "  from " + Printable(Text(source, "dir")));
  }
  for (const auto& channel : spec.value("data", Json::array())) {
    Field("data", Text(channel, "name") + " from " + Printable(Text(channel, "from")) + " (" +
                      Text(channel, "mode") + ")");
  }
  Field("created", Local(TimeOf(*body, "created")));
  if (TimeOf(*body, "started") != 0) Field("started", Local(TimeOf(*body, "started")));
  if (TimeOf(*body, "ended") != 0) Field("ended", Local(TimeOf(*body, "ended")));
  Field("took", Took(*body));
  ShowAttempts(*body, terminal);
  ShowSurvival(*body);
  for (const auto& metric : body->value("metrics", Json::array())) {
    Field("metric",
          fmt::format("{}  last {}  min {}  max {}  ({} points)", Printable(Text(metric, "name")),
                      NumberText(metric["last"]), NumberText(metric["min"]),
                      NumberText(metric["max"]), Number(metric, "count")));
  }
  for (const auto& line : UnmatchedMetrics(*body)) Field("metric", line);
  for (const auto& output : body->value("outputs", Json::array())) {
    const auto size = HumanBytes(static_cast<uint64_t>(Number(output, "bytes")));
    if (Text(output, "name") != Output::kFiles) {
      Field("output", Text(output, "name") + "  " + size);
      continue;
    }
    if (const auto files = static_cast<uint64_t>(Number(output, "files"))) {
      Field("output", Counted(files, "file") + "  " + size + "   ath cp " +
                          ShellQuote(Text(*body, "name") + ":"));
    }
    for (const auto& line : LeftOutLines(output.value("left_out", Json::object()))) {
      Field("left out", line);
    }
  }
  Field("cost",
        HumanMoney(Number(*body, "cost_micros")) + "  (" + Text((*body)["price"], "source") + ")");
  PrintHint("ath logs " + ShellQuote(Text(*body, "name")) + " · ath why " +
                ShellQuote(Text(*body, "name")),
            common.quiet);
  return 0;
}

int WhyVerb(const Common& common, const std::string& job) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto body = client->Get("/api/v1/jobs/" + UrlEncode(job));
  if (!body) return Refuse(body.error(), common.json);
  Json cause = body->value("cause", Json::object());
  if (common.json) {
    Json out = {{"id", Text(*body, "id")},
                {"name", Text(*body, "name")},
                {"state", Text(*body, "state")},
                {"shown_state", Text(*body, "shown_state")},
                {"cause", cause}};
    if (body->contains("last_seen")) out["last_seen"] = (*body)["last_seen"];
    if (auto order = FallOrderOf(*body); !order.empty()) {
      out["fell"] = (*body)["attempts"].back()["fell"];
      out["fall_order"] = std::move(order);
    }
    std::printf("%s\n", DumpJson(out).c_str());
    return 0;
  }
  auto terminal = DetectTerminal();
  auto state = Text(*body, "shown_state");
  const auto attempts = body->value("attempts", Json::array());
  std::string head = Printable(Text(*body, "name")) + " " + Paint(terminal, InkOf(state), state);
  if (TimeOf(*body, "started") != 0) head += " after " + Took(*body);
  if (attempts.size() > 1) head += fmt::format(" on attempt {}", attempts.size());
  std::printf("%s\n", head.c_str());
  auto print = [](const char* label, const std::string& text) {
    bool first = true;
    for (const auto& line : Split(Trim(text), '\n')) {
      if (line.empty() && first) return;
      std::printf("  %-6s %s\n", first ? label : "", line.c_str());
      first = false;
    }
  };
  if (Text(cause, "text").empty()) {
    print("what", state == "Running" ? "it is running" : "nothing has gone wrong so far");
  }
  print("what", Text(cause, "text"));
  print("order", Join(FallOrderOf(*body), "\n"));
  if (state == "Unknown") print("since", Local(TimeOf(*body, "last_seen")));
  if (Text(cause, "detail") != Text(cause, "text")) print("where", Text(cause, "detail"));
  for (const auto& output : body->value("outputs", Json::array())) {
    const auto lines = LeftOutLines(output.value("left_out", Json::object()));
    if (!lines.empty()) print("note", "files were not kept:\n" + Join(lines, "\n"));
  }
  for (const auto& unseen : body->value("rules_without_metric", Json::array())) {
    print("note", unseen.get<std::string>());
  }
  print("next", Text(cause, "hint"));
  if (!Text(cause, "code").empty()) {
    print("code", Text(cause, "code") + "   ath explain " + Text(cause, "code"));
  }
  return 0;
}

namespace {

constexpr size_t kTrendWidth = 16;

int PlotMetric(const Common& common, Client& client, const std::string& job,
               const std::string& name) {
  const Terminal terminal = DetectTerminal();
  auto text = client.GetText(PointsTarget("/api/v1/runs/" + UrlEncode(job) + "/metrics", name) +
                             fmt::format("&width={}", terminal.columns * 2));
  if (!text) return Refuse(text.error(), common.json);
  std::vector<PlotPoint> points;
  for (const auto& line : Split(*text, '\n')) {
    auto point = ParseJson(line);
    if (!point || !point->is_object()) continue;
    const auto& value = (*point)["value"];
    const double x = point->contains("step") ? static_cast<double>(Number(*point, "step"))
                                             : static_cast<double>(points.size());
    points.push_back({x, value.is_number() ? value.get<double>() : NAN});
  }
  std::printf("%s\n%s", Printable(name).c_str(),
              PlotText(points, terminal.columns, kPlotRows, terminal.ascii).c_str());
  return 0;
}

std::string TrendOf(const Json& metric, const Terminal& terminal) {
  std::vector<double> values;
  for (const auto& value : metric.value("trend", Json::array())) {
    values.push_back(value.is_number() ? value.get<double>() : NAN);
  }
  return Sparkline(values, kTrendWidth, terminal.ascii);
}

int PlotAll(const Common& common, Client& client, const std::string& job) {
  auto body = client.Get("/api/v1/jobs/" + UrlEncode(job) + "/metrics");
  if (!body) return Refuse(body.error(), common.json);
  for (const auto& metric : (*body)["metrics"]) {
    if (const int status = PlotMetric(common, client, job, Text(metric, "name")); status != 0) {
      return status;
    }
  }
  return 0;
}

}  // namespace

int MetricsVerb(const Common& common, const MetricsOptions& options) {
  const auto& [job, name, plot, follow] = options;
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  if (follow) return FollowMetrics(common, *client, job, name);
  if (plot && !common.json) {
    return name.empty() ? PlotAll(common, *client, job) : PlotMetric(common, *client, job, name);
  }
  auto ref = "/api/v1/jobs/" + UrlEncode(job) + "/metrics";
  if (!name.empty()) {
    auto points = client->GetText(PointsTarget(ref, name));
    if (!points) return Refuse(points.error(), common.json);
    if (common.json) {
      std::fwrite(points->data(), 1, points->size(), stdout);
      return 0;
    }
    Table table({"STEP", "VALUE", "TIME"});
    for (const auto& line : Split(*points, '\n')) {
      auto point = ParseJson(line);
      if (!point || !point->is_object()) continue;
      table.Add({point->contains("step") ? std::to_string(Number(*point, "step")) : "-",
                 NumberText((*point)["value"]), Local(TimeOf(*point, "time"))});
    }
    std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
    return 0;
  }
  auto body = client->Get(common.json ? ref : fmt::format("{}?trend={}", ref, kTrendWidth));
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) {
    std::printf("%s\n", DumpJson(*body).c_str());
    return 0;
  }
  const Terminal terminal = DetectTerminal();
  Table table({"METRIC", "LAST", "STEP", "MIN", "MAX", "POINTS", "TREND"});
  for (const auto& metric : (*body)["metrics"]) {
    table.Add({Printable(Text(metric, "name")), NumberText(metric["last"]),
               metric.contains("last_step") ? std::to_string(Number(metric, "last_step")) : "-",
               NumberText(metric["min"]), NumberText(metric["max"]),
               std::to_string(Number(metric, "count")), TrendOf(metric, terminal)});
  }
  std::vector<std::string> unmatched;
  if (auto record = client->Get("/api/v1/jobs/" + UrlEncode(job)))
    unmatched = UnmatchedMetrics(*record);
  if (table.empty()) {
    std::puts("no metrics");
    for (const auto& line : unmatched) std::printf("%s\n", line.c_str());
    if (!unmatched.empty()) {
      PrintHint("ath logs " + ShellQuote(job) + " --tail 20", common.quiet);
      return 0;
    }
    PrintHint("athanor.log(loss=x, step=i) in the script, or --metric loss='loss=(\\S+)'",
              common.quiet);
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  for (const auto& line : unmatched) std::printf("%s\n", line.c_str());
  return 0;
}

int EventsVerb(const Common& common, const std::string& job, bool follow) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  auto print = [&](const Json& event) {
    if (common.json) {
      std::printf("%s\n", DumpJson(event).c_str());
    } else {
      auto cause = event.value("cause", Json::object());
      auto id = Text(event, "job");
      const auto line = fmt::format("{}  {}  {:<14}  {:<11}  {}", Local(TimeOf(event, "at")),
                                    id.substr(id.size() - 6), Text(event, "name"),
                                    Text(event, "state"), Printable(Text(cause, "text")));
      const Terminal terminal = DetectTerminal();
      std::printf(
          "%s\n",
          (terminal.out_tty ? Shortened(line, terminal.columns, terminal.ascii) : line).c_str());
    }
    std::fflush(stdout);
  };
  if (!job.empty() && !follow) {
    auto body = client->Get("/api/v1/jobs/" + UrlEncode(job) + "/events");
    if (!body) return Refuse(body.error(), common.json);
    for (const auto& event : (*body)["events"]) print(event);
    return 0;
  }
  std::string only;
  if (!job.empty()) {
    auto body = client->Get("/api/v1/jobs/" + UrlEncode(job));
    if (!body) return Refuse(body.error(), common.json);
    only = Text(*body, "id");
  }
  std::string last = "0";
  LostServer lost(*client, "", common.quiet || common.json);
  for (;;) {
    HttpCall call;
    call.target = "/api/v1/events?after=" + last + "&follow=" + (follow ? "true" : "false");
    call.read_timeout = std::chrono::hours(24);
    SseParser parser;
    call.on_body = [&](std::string_view bytes) {
      lost.Answered();
      return parser
          .Feed(bytes,
                [&](const SseEvent& event) {
                  if (!event.id.empty()) last = event.id;
                  auto data = ParseJson(event.data);
                  if (data && (only.empty() || Text(*data, "job") == only)) print(*data);
                  return true;
                })
          .ok();
    };
    auto reply = client->Do(std::move(call));
    if (reply && !follow) return 0;
    const Error why =
        reply ? Error{ErrorCode::kUnavailable, "the server keeps closing the connection"}
              : reply.error();
    if (!follow) return Refuse(why, common.json);
    if (auto again = lost.Wait(why); !again) return Refuse(again.error(), common.json);
  }
}

}  // namespace athanor
