// The native door's overviews of what is tracked: names, experiments, models, and which
// parameters matter.
#include <algorithm>
#include <map>

#include "base/text/json_writer.h"
#include "base/text/text.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "track/importance.h"
#include "track/own_filter.h"
#include "track/run_names.h"

namespace athanor {
namespace {

constexpr uint64_t kUsualNames = 100;
constexpr uint64_t kMostNames = 100'000;
constexpr size_t kMostCompared = 10'000;

Result<NameQuery> NameQueryOf(const DoorContext& context, const Request& request) {
  NameQuery query;
  const auto kind = request.Query("kind").value_or("metric");
  if (kind == "param") {
    query.of = KeyKind::kParam;
  } else if (kind == "tag") {
    query.of = KeyKind::kTag;
  } else if (kind != "metric") {
    return Fail(Error{ErrorCode::kInvalid, "no such kind of name", "kind=metric, param or tag"}
                    .Why("got '" + Printable(kind.substr(0, 80)) + "'")
                    .Id("ATH-R0031"));
  }
  query.contains = request.Query("contains").value_or("");
  ATHANOR_TRY(const auto limit, WholeNumber(request, "limit"));
  query.limit = std::min(limit.value_or(kUsualNames), kMostNames);
  if (const auto name = request.Query("experiment"); name && !name->empty()) {
    ATHANOR_TRY(const auto experiment, context.runs.ExperimentNamed(*name));
    query.experiment = experiment.row.id;
  }
  return query;
}

void Names(DoorContext& context, const Call& call) {
  const auto query = NameQueryOf(context, call.request);
  if (!query) return call.Refuse(query.error());
  const auto page = CountNames(context.runs, *query);
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Int("total", static_cast<int64_t>(page.total));
  json.Key("names");
  json.BeginArray();
  for (const auto& row : page.names) {
    json.BeginObject();
    json.Text("name", row.name);
    json.Int("runs", static_cast<int64_t>(row.runs));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

void Experiments(DoorContext& context, const Call& call) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("experiments");
  json.BeginArray();
  for (const auto& experiment : context.runs.Experiments()) {
    if (experiment.row.deleted) continue;
    const auto sum = context.runs.SumOf(experiment.row.id);
    json.BeginObject();
    json.Text("id", std::to_string(experiment.row.id));
    json.Text("name", experiment.row.name);
    json.Int("runs", sum.runs);
    json.Int("last_ms", std::max(sum.last_ms, experiment.row.updated_ms));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

void WriteTags(JsonWriter& json, const Tags& tags) {
  json.Key("tags");
  json.BeginObject();
  for (const auto& [key, value] : tags) json.Text(key, value);
  json.EndObject();
}

void WriteVersion(JsonWriter& json, const RegisteredModel& model, const ModelVersion& version) {
  json.BeginObject();
  json.Int("version", version.row.version);
  json.Text("stage", version.row.stage);
  json.Text("description", version.row.description);
  json.Text("source", version.row.source);
  json.Text("run_id", version.row.run_id);
  json.Int("created_ms", version.row.created_ms);
  json.Int("updated_ms", version.row.updated_ms);
  json.Key("aliases");
  json.BeginArray();
  for (const auto& [alias, number] : model.aliases) {
    if (number == version.row.version) json.Text(alias);
  }
  json.EndArray();
  WriteTags(json, version.tags);
  json.EndObject();
}

// The book of models belongs to the loop's thread.
void Models(DoorContext& context, const Call& call) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("models");
  json.BeginArray();
  for (const auto& [name, model] : context.models.models()) {
    json.BeginObject();
    json.Text("name", name);
    json.Text("description", model.row.description);
    json.Int("created_ms", model.row.created_ms);
    json.Int("updated_ms", model.row.updated_ms);
    WriteTags(json, model.tags);
    json.Key("versions");
    json.BeginArray();
    for (auto at = model.versions.rbegin(); at != model.versions.rend(); ++at) {
      WriteVersion(json, model, at->second);
    }
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  call.Json(200, std::move(body));
}

struct Compared {
  std::vector<double> losses;
  std::vector<ParamColumn> columns;
};

// A param that some runs lack varies only among those that have it.
bool Varies(const ParamColumn& column) {
  const std::string* first = nullptr;
  for (const auto& value : column.values) {
    if (!value) continue;
    if (!first) first = &*value;
    if (*value != *first) return true;
  }
  return false;
}

// The runs that the caller means: those named, or those of an experiment that pass a filter.
Result<std::vector<JobId>> RunsMeant(const DoorContext& context, const Request& request) {
  if (const auto names = request.Query("runs"); names && !names->empty()) {
    std::vector<JobId> runs;
    for (const auto& name : Split(*names, ',')) {
      ATHANOR_TRY(const auto run, ResolveRun(context, name));
      runs.push_back(run);
    }
    return runs;
  }
  RunQuery query;
  query.limit = kMostCompared;
  ATHANOR_TRY(query.filter, ParseOwnFilter(request.Query("filter").value_or("")));
  if (const auto name = request.Query("experiment"); name && !name->empty()) {
    ATHANOR_TRY(const auto experiment, context.runs.ExperimentNamed(*name));
    query.experiments = {experiment.row.id};
  }
  return context.runs.Search(query).runs;
}

// The runs that have the metric, as a table of params that differ. NaN counts, as the worst.
Compared TableOf(const RunBook& book, const std::vector<JobId>& runs, const std::string& metric,
                 bool maximize) {
  Compared table;
  std::map<uint32_t, size_t> columns;
  book.Look(runs, [&](const RunEntry& run) {
    const auto at = std::find_if(run.metrics.begin(), run.metrics.end(),
                                 [&](const RunMetric& m) { return book.KeyName(m.key) == metric; });
    if (at == run.metrics.end()) return;
    const size_t row = table.losses.size();
    table.losses.push_back(maximize ? -at->last : at->last);
    for (const auto& param : run.params) {
      const auto [column, fresh] = columns.emplace(param.key, table.columns.size());
      if (fresh) table.columns.push_back({book.KeyName(param.key), {}});
      auto& values = table.columns[column->second].values;
      values.resize(row);
      values.emplace_back(param.value);
    }
  });
  for (auto& column : table.columns) column.values.resize(table.losses.size());
  std::erase_if(table.columns, [](const ParamColumn& column) { return !Varies(column); });
  return table;
}

void Importance(DoorContext& context, const Call& call) {
  const auto metric = call.request.Query("metric").value_or("");
  const auto goal = call.request.Query("goal").value_or("minimize");
  if (metric.empty() || (goal != "minimize" && goal != "maximize")) {
    return call.Refuse(Error{ErrorCode::kInvalid,
                             metric.empty() ? "of which metric?" : "no such goal",
                             "metric=loss&goal=minimize"}
                           .Id("ATH-R0031"));
  }
  OnReader(context, call, [&context, call, metric, maximize = goal == "maximize"] {
    const auto runs = RunsMeant(context, call.request);
    if (!runs) {
      Error error = runs.error();
      if (error.id.empty()) error.id = "ATH-R0031";
      return call.Refuse(error);
    }
    const auto table = TableOf(context.runs, *runs, metric, maximize);
    std::string body;
    JsonWriter json(body);
    json.BeginObject();
    json.Text("metric", metric);
    json.Int("runs", static_cast<int64_t>(table.losses.size()));
    json.Key("params");
    json.BeginArray();
    for (const auto& weight : ParamWeights(table.losses, table.columns)) {
      json.BeginObject();
      json.Text("name", weight.name);
      json.Double("importance", weight.importance);
      json.EndObject();
    }
    json.EndArray();
    json.EndObject();
    call.Json(200, std::move(body));
  });
}

}  // namespace

std::vector<DoorRoute> NameRoutes(DoorContext& context) {
  const auto bind = [&context](void (*handler)(DoorContext&, const Call&)) {
    return [&context, handler](const Call& call) { handler(context, call); };
  };
  return {
      Native("names.list", bind(Names)),
      Native("experiments.list", bind(Experiments)),
      Native("models.list", bind(Models)),
      Native("runs.importance", bind(Importance)),
  };
}

}  // namespace athanor
