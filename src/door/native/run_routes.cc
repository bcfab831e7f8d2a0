// The native door's runs: list with filter, order and columns; one; its points, sampled.
#include <algorithm>
#include <map>
#include <optional>

#include "base/text/format.h"
#include "base/text/json_writer.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/points_body.h"
#include "door/native/views.h"
#include "door/queries.h"
#include "track/own_filter.h"

namespace athanor {
namespace {

constexpr size_t kUsualRuns = 20;
constexpr size_t kMostRuns = 10'000;
constexpr size_t kMostWidth = 20'000;

// Which metrics, params and tags a caller wants; everything when it names none.
struct Columns {
  bool all = true;
  std::vector<std::string> metrics;
  std::vector<std::string> params;
  std::vector<std::string> tags;
};

Result<Columns> ColumnsOf(const Request& request) {
  Columns columns;
  for (const auto& [key, value] : request.query) {
    if (key != "column") continue;
    columns.all = false;
    ATHANOR_TRY(const auto field, ParseOrderBy(value, Searched::kRuns));
    if (field.type == FieldType::kMetric) columns.metrics.push_back(field.key);
    if (field.type == FieldType::kParam) columns.params.push_back(field.key);
    if (field.type == FieldType::kTag) columns.tags.push_back(field.key);
  }
  return columns;
}

bool Wanted(const Columns& columns, const std::vector<std::string>& names,
            const std::string& name) {
  return columns.all || std::find(names.begin(), names.end(), name) != names.end();
}

void WriteRun(JsonWriter& json, const RunBook& book, const RunEntry& run,
              const std::string& experiment, const Columns& columns) {
  json.BeginObject();
  json.Text("id", run.id.ToString());
  json.Text("run_id", run.id.value.ToHex());
  json.Text("name", run.name);
  json.Text("experiment", experiment);
  json.Text("user", book.UserOf(run));
  json.Text("status", NameOf(run.status));
  json.Text("created", Rfc3339({CreatedMs(run)}));
  if (const auto began = BeganMs(run)) json.Text("started", Rfc3339({*began}));
  if (run.ended_ms != 0) json.Text("ended", Rfc3339({run.ended_ms}));
  json.Key("job");
  json.Bool(run.is_job);
  json.Key("metrics");
  json.BeginObject();
  for (const auto& metric : run.metrics) {
    const auto& name = book.KeyName(metric.key);
    if (!Wanted(columns, columns.metrics, name)) continue;
    json.Key(name);
    json.BeginObject();
    json.Double("last", metric.last);
    json.Int("step", metric.step);
    json.Double("min", metric.min);
    json.Double("max", metric.max);
    json.Int("count", static_cast<int64_t>(metric.count));
    json.EndObject();
  }
  json.EndObject();
  const auto labels = [&](std::string_view key, const RunLabels& all,
                          const std::vector<std::string>& names) {
    json.Key(key);
    json.BeginObject();
    for (const auto label : all) {
      const auto& name = book.KeyName(label.key);
      if (Wanted(columns, names, name)) json.Text(name, label.value);
    }
    json.EndObject();
  };
  labels("params", run.params, columns.params);
  labels("tags", run.tags, columns.tags);
  json.EndObject();
}

std::map<int64_t, std::string> ExperimentNames(const RunBook& book) {
  std::map<int64_t, std::string> names;
  for (const auto& experiment : book.Experiments()) names[experiment.row.id] = experiment.row.name;
  return names;
}

size_t NumberIn(const Request& request, std::string_view name, size_t usual, size_t most) {
  const auto text = request.Query(name);
  return text ? std::min<size_t>(std::strtoull(text->c_str(), nullptr, 10), most) : usual;
}

Result<RunQuery> QueryOf(const RunBook& book, const Request& request) {
  RunQuery query;
  query.limit = NumberIn(request, "limit", kUsualRuns, kMostRuns);
  query.offset = NumberIn(request, "offset", 0, SIZE_MAX);
  ATHANOR_TRY(query.filter, ParseOwnFilter(request.Query("filter").value_or("")));
  std::vector<std::string> order;
  for (const auto& [key, value] : request.query) {
    if (key == "order") order.push_back(value);
  }
  ATHANOR_TRY(query.order, ParseOrder(order, Searched::kRuns));
  if (const auto token = request.Query("after"); token && !token->empty()) {
    ATHANOR_TRY(query.after, DecodePlace(*token));
    if (query.after->values.size() != query.order.size()) {
      return Fail(ErrorCode::kInvalid, "this `after` was given for another order");
    }
  }
  if (const auto name = request.Query("experiment")) {
    ATHANOR_TRY(const auto experiment, book.ExperimentNamed(*name));
    query.experiments = {experiment.row.id};
  }
  if (request.Query("deleted").value_or("") == "true") query.view = ViewType::kDeleted;
  return query;
}

Error AsNative(Error error) {
  if (error.id.empty()) error.id = error.code == ErrorCode::kNotFound ? "ATH-R0030" : "ATH-R0031";
  if (error.hint.empty()) error.hint = "ath runs";
  return error;
}

void ListRuns(DoorContext& context, const Call& call) {
  const RunBook& book = context.runs;
  const auto query = QueryOf(book, call.request);
  if (!query) return call.Refuse(AsNative(query.error()));
  const auto columns = ColumnsOf(call.request);
  if (!columns) return call.Refuse(AsNative(columns.error()));
  const RunPage page = book.Search(*query);
  const auto experiments = ExperimentNames(book);
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Int("matched", static_cast<int64_t>(page.matched));
  json.Key("runs");
  json.BeginArray();
  book.Look(page, [&](const RunEntry& run) {
    const auto name = experiments.find(run.experiment);
    WriteRun(json, book, run, name == experiments.end() ? "" : name->second, *columns);
  });
  json.EndArray();
  if (page.next) json.Text("next", EncodePlace(*page.next));
  json.EndObject();
  call.Json(200, std::move(body));
}

void Show(DoorContext& context, const Call& call) {
  const auto id = ResolveRun(context, call.captures["run"]);
  if (!id) return call.Refuse(id.error());
  const auto experiments = ExperimentNames(context.runs);
  std::string body;
  JsonWriter json(body);
  context.runs.Look({*id}, [&](const RunEntry& run) {
    const auto name = experiments.find(run.experiment);
    WriteRun(json, context.runs, run, name == experiments.end() ? "" : name->second, {});
  });
  call.Json(200, std::move(body));
}

void Points(DoorContext& context, const Call& call) {
  const auto run = ResolveRun(context, call.captures["run"]);
  if (!run) return call.Refuse(run.error());
  const JobId id = *run;
  SampleQuery query;
  query.width = NumberIn(call.request, "width", 0, kMostWidth);
  for (const auto& [name, field] :
       {std::pair("from", &query.from_step), std::pair("to", &query.to_step)}) {
    if (const auto text = call.request.Query(name)) {
      *field = std::strtoll(text->c_str(), nullptr, 10);
    }
  }
  const std::string name = call.request.Query("name").value_or(call.captures["name"]);
  if (query.width == 0) return SendPoints(context, call, id, name, false);
  auto points = context.series.Sample(id, name, query, context.runs.ResumesOf(id));
  if (!points) return call.Refuse(points.error());
  Response response;
  response.headers.Add("Content-Type", "application/x-ndjson");
  response.body = PointsView(name, *points);
  call.responder.Send(std::move(response));
}

}  // namespace

Result<JobId> ResolveRun(const DoorContext& context, const std::string& reference) {
  if (const auto id = JobId::Parse(reference); id && context.runs.Has(*id)) return *id;
  // Every job is a run here, so that who asks for a run by name need not wait for the database.
  auto run = context.runs.Resolve(reference);
  if (run) return run;
  if (run.error().code == ErrorCode::kNotFound) return context.jobs.Resolve(reference);
  Error error = run.error();
  error.hint = "ath runs";
  error.id = "ATH-R0030";
  return Fail(std::move(error));
}

std::vector<DoorRoute> RunRoutes(DoorContext& context) {
  return {
      Native("runs.list", [&context](const Call& call) { ListRuns(context, call); }),
      Native("runs.show", [&context](const Call& call) { Show(context, call); }),
      Native("runs.points", [&context](const Call& call) { Points(context, call); }),
  };
}

}  // namespace athanor
