// runs, compare: what was tried and how it went.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "cli/client.h"
#include "cli/screen/output.h"
#include "cli/screen/pages.h"
#include "cli/screen/reading.h"
#include "cli/screen/refuse.h"
#include "cli/verbs/verbs.h"
#include "job/shown.h"

namespace athanor {
namespace {

constexpr size_t kShownMetrics = 4;  // if none is given
constexpr size_t kShownParams = 3;

// "loss" is a metric unless it is one of the run's own attributes; backticks where needed.
std::string FieldOf(const std::string& name) {
  static const std::set<std::string> kAttributes = {"run_id", "run_name",   "user_id",
                                                    "status", "start_time", "end_time"};
  for (const char* type : {"metrics.", "params.", "tags.", "attributes."}) {
    if (StartsWith(name, type)) {
      const std::string key = name.substr(std::string_view(type).size());
      return key.find('`') == std::string::npos ? type + ("`" + key + "`") : name;
    }
  }
  return kAttributes.contains(name) ? name : "metrics.`" + name + "`";
}

// Metrics or params of the runs shown, the most common first.
std::vector<std::string> MostCommon(const Json& runs, const char* member, size_t most) {
  std::map<std::string, size_t> seen;
  for (const auto& run : runs) {
    const auto named = run.value(member, Json::object());
    for (const auto& [name, value] : named.items()) ++seen[name];
  }
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto& [name, count] : seen) order.emplace_back(runs.size() - count, name);
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(order.size(), most); ++i) names.push_back(order[i].second);
  return names;
}

std::string MetricIn(const Json& run, const std::string& name) {
  const auto metrics = run.value("metrics", Json::object());
  return metrics.contains(name) ? NumberText(metrics[name]["last"]) : "-";
}

std::string LabelIn(const Json& run, const char* member, const std::string& name) {
  const auto labels = run.value(member, Json::object());
  return labels.contains(name) ? Printable(labels[name].get<std::string>()) : "-";
}

// What follows the value of a parameter that the script did not read.
std::string UnreadIn(const Json& run, const std::string& name) {
  if (!run.contains("unread")) return "";
  for (const auto& param : run["unread"].value("params", Json::array())) {
    if (Text(param, "name") == name) return " (" + Text(param, "mark") + ")";
  }
  return "";
}

// The shown columns: member of a run and key.
std::vector<std::pair<std::string, std::string>> ColumnsOf(const RunsOptions& options,
                                                           const Json& runs) {
  std::vector<std::pair<std::string, std::string>> columns;
  std::vector<std::string> asked = options.columns;
  if (asked.empty()) {
    for (const auto& sort : options.sort)
      asked.push_back(sort.front() == '-' ? sort.substr(1) : sort);
  }
  for (const auto& name : asked) {
    const std::string field = FieldOf(name);
    for (const char* member : {"metrics", "params", "tags"}) {
      if (!StartsWith(field, std::string(member) + ".")) continue;
      std::string key = field.substr(std::string_view(member).size() + 1);
      if (key.size() > 1 && key.front() == '`') key = key.substr(1, key.size() - 2);
      columns.emplace_back(member, key);
    }
  }
  if (!options.columns.empty()) return columns;
  for (const auto& name : MostCommon(runs, "metrics", kShownMetrics)) {
    const std::pair<std::string, std::string> column("metrics", name);
    if (std::find(columns.begin(), columns.end(), column) == columns.end())
      columns.push_back(column);
  }
  for (const auto& name : MostCommon(runs, "params", kShownParams))
    columns.emplace_back("params", name);
  return columns;
}

}  // namespace

int RunsVerb(const Common& common, const RunsOptions& options) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  std::string target;
  std::string again;
  const auto repeat = [&again](const char* flag, const std::string& value) {
    if (!value.empty()) again += std::string(" ") + flag + " " + ShellQuote(value);
  };
  if (!options.filter.empty()) target += "&filter=" + UrlEncode(options.filter);
  if (!options.experiment.empty()) target += "&experiment=" + UrlEncode(options.experiment);
  repeat("--filter", options.filter);
  repeat("--experiment", options.experiment);
  for (const auto& sort : options.sort) repeat("--sort", sort);
  for (const auto& column : options.columns) repeat("-c", column);
  for (const auto& sort : options.sort) {
    if (sort.empty()) continue;
    const bool down = sort.front() == '-';
    target += "&order=" + UrlEncode(FieldOf(down ? sort.substr(1) : sort) + (down ? " DESC" : ""));
  }
  for (const auto& column : options.columns) target += "&column=" + UrlEncode(FieldOf(column));
  auto body = FetchRuns(*client, target, options.limit);
  if (!body) return Refuse(body.error(), common.json);
  if (common.json) return PrintJson(*body);
  const Json& runs = (*body)["runs"];
  const auto columns = ColumnsOf(options, runs);
  std::vector<std::string> head = {"RUN", "NAME", "EXPERIMENT", "STATE", "CREATED"};
  for (const auto& [member, key] : columns) {
    // Distinguishes a metric and a parameter of the same name.
    const auto same = std::ranges::count_if(
        columns, [&name = key](const auto& one) { return one.second == name; });
    head.push_back(Printable(same > 1 ? member + "." + key : key));
  }
  Table table(head);
  for (const auto& run : runs) {
    const std::string id = Text(run, "id");
    std::vector<std::string> cells = {
        id.size() > 6 ? id.substr(id.size() - 6) : id, Printable(Text(run, "name")),
        Printable(Text(run, "experiment")), std::string(ShownStatus(Text(run, "status"))),
        Ago(TimeOf(run, "created"))};
    for (const auto& [member, key] : columns) {
      cells.push_back(member == "metrics" ? MetricIn(run, key) : LabelIn(run, member.c_str(), key));
    }
    table.Add(std::move(cells), {Ink::kGrey, Ink::kBold});
  }
  if (table.empty()) {
    std::puts("no runs");
    PrintHint(options.filter.empty() ? "ath run -- python train.py" : "ath runs", common.quiet);
    return 0;
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  const auto matched = static_cast<size_t>(Number(*body, "matched"));
  SayMore(runs.size(), matched, "runs", "ath runs --limit " + std::to_string(matched) + again,
          common.quiet);
  return 0;
}

int CompareVerb(const Common& common, const std::vector<std::string>& names) {
  auto client = Client::Connect(common.home);
  if (!client) return Refuse(client.error(), common.json);
  Json runs = Json::array();
  for (const auto& name : names) {
    auto run = client->Get("/api/v1/runs/" + UrlEncode(name));
    if (!run) return Refuse(run.error(), common.json);
    if (run->value("job", false)) {
      auto job = client->Get("/api/v1/jobs/" + UrlEncode(Text(*run, "id")));
      if (job && job->contains("unread")) (*run)["unread"] = (*job)["unread"];
    }
    runs.push_back(std::move(*run));
  }
  if (common.json) return PrintJson(Json{{"runs", runs}});
  std::vector<std::string> head = {"", ""};
  for (const auto& run : runs) head.push_back(Printable(Text(run, "name")));
  Table table(head);
  const auto add = [&](std::string section, const std::string& key,
                       const std::vector<std::string>& values) {
    std::vector<std::string> cells = {std::move(section), Printable(key)};
    cells.insert(cells.end(), values.begin(), values.end());
    const bool same = std::all_of(values.begin(), values.end(),
                                  [&](const auto& value) { return value == values.front(); });
    table.Add(std::move(cells), {Ink::kGrey, same ? Ink::kGrey : Ink::kBold});
  };
  for (const char* attribute : {"status", "experiment"}) {
    std::vector<std::string> values;
    for (const auto& run : runs) values.push_back(Printable(Text(run, attribute)));
    add("", attribute, values);
  }
  for (const char* member : {"params", "metrics"}) {
    std::string section = member;
    for (const auto& key : MostCommon(runs, member, SIZE_MAX)) {
      std::vector<std::string> values;
      for (const auto& run : runs) {
        values.push_back(std::string_view(member) == "metrics" ? MetricIn(run, key)
                                                               : LabelIn(run, member, key));
        if (std::string_view(member) == "params") values.back() += UnreadIn(run, key);
      }
      add(std::exchange(section, ""), key, values);
    }
  }
  std::fputs(table.Format(DetectTerminal()).c_str(), stdout);
  return 0;
}

}  // namespace athanor
