// MLflow's runs: made, changed, searched.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/job_rights.h"
#include "door/mlflow/validate.h"
#include "job/friendly_name.h"

namespace athanor {
namespace {

constexpr size_t kMostRuns = 50'000;

Answer Kept(RunBatch batch) { return {"{}", std::move(batch), {}}; }

Result<std::string> RunText(const Mlflow& mlflow, JobId id) {
  std::string body;
  mlflow.context.runs.Look({id}, [&](const RunEntry& run) {
    JsonWriter json(body);
    json.BeginObject();
    json.Key("run");
    RunJson(json, mlflow.context).Write(run);
    json.EndObject();
  });
  if (!body.empty()) return body;
  return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                    fmt::format("Run with id={} not found", id.value.ToHex()));
}

Result<int64_t> ExperimentOf(const Fields& fields) {
  ATHANOR_TRY(const std::string text, fields.Text("experiment_id"));
  if (text.empty()) return int64_t{0};
  ATHANOR_TRY(const auto id, fields.Int("experiment_id"));
  return *id;
}

// A tag's key is checked, its value is cut to the limit, as MLflow does.
Result<RunBook::Pairs> CheckedTags(RunBook::Pairs tags, std::string_view parameter) {
  for (size_t i = 0; i < tags.size(); ++i) {
    ATHANOR_CHECK_OK(CheckMlflowKey(tags[i].first, fmt::format("{}[{}].key", parameter, i)));
    tags[i].second = CutTo(tags[i].second, kMostTagChars);
  }
  return tags;
}

// The name from run_name or from the tag; both only when they agree.
Result<std::string> NameFor(const std::string& asked, const RunBook::Pairs& tags, JobId id) {
  std::string name = asked;
  for (const auto& [key, value] : tags) {
    if (key != "mlflow.runName" || value.empty()) continue;
    if (!name.empty() && name != value) {
      return InvalidParameter(fmt::format(
          "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different "
          "values (run_name='{}', mlflow.runName='{}').",
          Printable(name), Printable(value)));
    }
    name = value;
  }
  if (name.empty()) {
    name = fmt::format("{}-{}", FriendlyName(id.value), id.value.bytes[15] * 4 + 1);
  }
  return name;
}

Result<Answer> Create(Mlflow& mlflow, const Fields& fields, const Call& call) {
  NewRun run;
  run.id = JobId::New();
  ATHANOR_TRY(run.experiment, ExperimentOf(fields));
  ATHANOR_TRY(const auto pairs, fields.Pairs("tags"));
  ATHANOR_TRY(run.tags, CheckedTags(pairs, "tags"));
  ATHANOR_TRY(const std::string asked, fields.Text("run_name"));
  ATHANOR_TRY(run.name, NameFor(CutTo(asked, kMostTagChars), run.tags, run.id));
  ATHANOR_TRY(run.user, fields.Text("user_id"));
  for (const auto& [key, value] : run.tags) {
    if (key == "mlflow.user" && run.user.empty()) run.user = value;
  }
  ATHANOR_TRY(const auto started, fields.Int("start_time"));
  run.started_ms = started.value_or(mlflow.Now());
  // Runs that a job logs in addition to its own can be found from it.
  if (const auto job = mlflow.JobOf(call)) {
    std::erase_if(run.tags, [](const auto& tag) { return tag.first == kJobTag; });
    run.tags.emplace_back(kJobTag, job->ToString());
  }
  ATHANOR_TRY(auto batch, mlflow.context.runs.AddRun(run));
  ATHANOR_TRY(auto body, RunText(mlflow, run.id));
  return Answer{std::move(body), std::move(batch), {}};
}

Result<Answer> Get(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const JobId id, fields.Run());
  RunBatch batch;
  // A script that set an experiment and now takes up its job's run: the run goes there.
  if (mlflow.JobOf(call) == id && mlflow.named_experiment.contains(id)) {
    ATHANOR_TRY(batch, mlflow.context.runs.MoveRun(id, mlflow.named_experiment.at(id)));
    mlflow.named_experiment.erase(id);
  }
  ATHANOR_TRY(auto body, RunText(mlflow, id));
  return Answer{std::move(body), std::move(batch), {}};
}

// On a thread that may read files, where nothing is changed.
Result<Answer> GetStale(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(auto body, RunText(mlflow, id));
  return Answer{std::move(body), {}, {}};
}

Result<Answer> Update(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  RunUpdate update;
  if (const Json* status = fields.Find("status")) {
    if (status->is_number_integer()) {
      const auto number = status->get<int64_t>();
      if (number >= 1 && number <= 5) update.status = static_cast<RunStatus>(number);
    } else if (status->is_string()) {
      update.status = RunStatusNamed(status->get<std::string>());
    }
    if (!update.status) {
      return InvalidValue("status", *status,
                          "It must be RUNNING, SCHEDULED, FINISHED, FAILED or KILLED.");
    }
  }
  ATHANOR_TRY(update.ended_ms, fields.Int("end_time"));
  ATHANOR_TRY(const std::string name, fields.Text("run_name"));
  if (!name.empty()) update.name = CutTo(name, kMostTagChars);
  ATHANOR_TRY(auto batch, mlflow.context.runs.UpdateRun(id, update));
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("run_info");
  WriteRunInfo(json, batch.runs.back());
  json.EndObject();
  return Answer{std::move(body), std::move(batch), {}};
}

Result<Answer> Delete(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(auto batch, mlflow.context.runs.SetRunDeleted(id, true, mlflow.Now()));
  return Kept(std::move(batch));
}

Result<Answer> Restore(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(auto batch, mlflow.context.runs.SetRunDeleted(id, false, mlflow.Now()));
  return Kept(std::move(batch));
}

Result<Answer> LogParam(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(const std::string value, fields.Text("value"));
  ATHANOR_CHECK_OK(CheckMlflowKey(key, "key"));
  ATHANOR_TRY(auto batch,
              mlflow.context.runs.LogParams(id, {{key, CutTo(value, kMostParamChars)}}));
  return Kept(std::move(batch));
}

Result<Answer> SetTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(const std::string value, fields.Text("value"));
  ATHANOR_CHECK_OK(CheckMlflowKey(key, "key"));
  ATHANOR_TRY(auto batch, mlflow.context.runs.SetTags(id, {{key, CutTo(value, kMostTagChars)}}));
  return Kept(std::move(batch));
}

Result<Answer> DeleteTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(auto batch, mlflow.context.runs.DeleteTag(id, key));
  return Kept(std::move(batch));
}

Result<Answer> LogModel(Mlflow& mlflow, const Fields& fields, const Call&) {
  constexpr std::string_view kHistory = "mlflow.log-model.history";
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(const std::string text, fields.Needed("model_json"));
  const auto model = ParseJson(text);
  if (!model || !model->is_object()) {
    return InvalidParameter("Malformed model info. \n " + Printable(text.substr(0, 200)) +
                            " \n is not a valid JSON.");
  }
  for (const char* needed : {"artifact_path", "flavors", "utc_time_created", "run_id"}) {
    if (model->contains(needed)) continue;
    return InvalidParameter(fmt::format("Model json is missing mandatory fields: ['{}']", needed));
  }
  ATHANOR_CHECK_OK(mlflow.context.runs.CheckActive(id));
  Json history = Json::array();
  if (const auto before = mlflow.context.runs.TagOf(id, kHistory)) {
    if (auto known = ParseJson(*before); known && known->is_array()) history = std::move(*known);
  }
  // Sent again by one who missed the answer: it is there.
  if (std::find(history.begin(), history.end(), *model) != history.end()) return Answer{};
  history.push_back(*model);
  ATHANOR_TRY(auto batch,
              mlflow.context.runs.SetTags(id, {{std::string(kHistory), DumpJson(history)}}));
  return Kept(std::move(batch));
}

Result<ModelLinkRow> LinkOf(const Json& model, bool output, const std::string& parameter) {
  if (!model.is_object() || !model.contains("model_id")) {
    return InvalidParameter("Missing value for required parameter '" + parameter + ".model_id'.");
  }
  ModelLinkRow link;
  ATHANOR_TRY(link.model, TextOf(model["model_id"], parameter + ".model_id"));
  link.output = output;
  if (model.contains("step")) {
    ATHANOR_TRY(link.step, IntOf(model["step"], parameter + ".step"));
  }
  return link;
}

Result<std::vector<ModelLinkRow>> LinksOf(const Fields& fields, bool output) {
  std::vector<ModelLinkRow> links;
  const Json* models = fields.Find("models");
  if (models == nullptr || !models->is_array()) return links;
  for (size_t i = 0; i < models->size(); ++i) {
    ATHANOR_TRY(auto link, LinkOf((*models)[i], output, fmt::format("models[{}]", i)));
    links.push_back(std::move(link));
  }
  return links;
}

Result<std::pair<DatasetRow, InputRow>> DatasetOf(const Json& item, const std::string& at) {
  if (!item.is_object() || !item.contains("dataset") || !item["dataset"].is_object()) {
    return InvalidParameter("Missing value for required parameter '" + at + ".dataset'.");
  }
  const Fields dataset(item["dataset"]);
  DatasetRow row;
  InputRow input;
  const std::tuple<const char*, std::string*, size_t> texts[] = {
      {"name", &row.name, 500},
      {"digest", &row.digest, 36},
      {"source_type", &row.source_type, SIZE_MAX},
      {"source", &row.source, 65'535}};
  for (const auto& [name, field, most] : texts) {
    auto text = dataset.Needed(name);
    if (!text) {
      return InvalidParameter(
          fmt::format("Missing value for required parameter '{}.dataset.{}'.", at, name));
    }
    ATHANOR_CHECK_OK(CheckLength(*text, most, name));
    *field = std::move(*text);
  }
  ATHANOR_TRY(row.schema, dataset.Text("schema"));
  ATHANOR_TRY(row.profile, dataset.Text("profile"));
  ATHANOR_CHECK_OK(CheckLength(row.schema, 1'048'575, "schema"));
  ATHANOR_CHECK_OK(CheckLength(row.profile, 16'777'215, "profile"));
  ATHANOR_TRY(const auto tags, Fields(item).Pairs("tags"));
  JsonWriter json(input.tags);
  json.BeginArray();
  for (const auto& [key, value] : tags) {
    ATHANOR_CHECK_OK(CheckLength(key, 255, "key"));
    ATHANOR_CHECK_OK(CheckLength(value, 500, "value"));
    json.BeginObject();
    json.Text("key", key);
    json.Text("value", value);
    json.EndObject();
  }
  json.EndArray();
  input.name = row.name;
  input.digest = row.digest;
  return std::pair(std::move(row), std::move(input));
}

Result<Answer> LogInputs(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  std::vector<DatasetRow> datasets;
  std::vector<InputRow> inputs;
  if (const Json* list = fields.Find("datasets"); list != nullptr && list->is_array()) {
    if (list->size() > 1000)
      return InvalidParameter("At most 1000 datasets can be logged at once.");
    for (size_t i = 0; i < list->size(); ++i) {
      ATHANOR_TRY(auto one, DatasetOf((*list)[i], fmt::format("datasets[{}]", i)));
      datasets.push_back(std::move(one.first));
      inputs.push_back(std::move(one.second));
    }
  }
  ATHANOR_TRY(auto links, LinksOf(fields, false));
  ATHANOR_TRY(auto batch, mlflow.context.runs.AddInputs(id, std::move(datasets), std::move(inputs),
                                                        std::move(links)));
  return Kept(std::move(batch));
}

Result<Answer> LogOutputs(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const JobId id, fields.Run());
  ATHANOR_TRY(auto links, LinksOf(fields, true));
  ATHANOR_TRY(auto batch, mlflow.context.runs.AddInputs(id, {}, {}, std::move(links)));
  return Kept(std::move(batch));
}

Result<Answer> Search(Mlflow& mlflow, const Fields& fields, const Call&) {
  RunQuery query;
  ATHANOR_TRY(query.limit, ReadLimit(fields, 1000, kMostRuns));
  ATHANOR_TRY(const auto ids, fields.Texts("experiment_ids"));
  query.experiments.emplace();
  for (const auto& id : ids) query.experiments->push_back(std::strtoll(id.c_str(), nullptr, 10));
  ATHANOR_TRY(const std::string filter, fields.Text("filter"));
  ATHANOR_TRY(query.filter, ParseFilter(filter, Searched::kRuns));
  ATHANOR_TRY(const auto order, fields.Texts("order_by"));
  ATHANOR_TRY(query.order, ParseOrder(order, Searched::kRuns));
  ATHANOR_TRY(query.view, ReadView(fields, "run_view_type"));
  ATHANOR_TRY(const std::string token, fields.Text("page_token"));
  if (!token.empty()) {
    ATHANOR_TRY(query.after, DecodePlace(token));
    if (query.after->values.size() != query.order.size()) {
      return InvalidParameter("Invalid page token: it was given for another order_by.");
    }
  }
  const RunPage found = mlflow.context.runs.Search(query);
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  if (!found.runs.empty()) {
    json.Key("runs");
    json.BeginArray();
    RunJson writer(json, mlflow.context);
    mlflow.context.runs.Look(found, [&](const RunEntry& run) { writer.Write(run); });
    json.EndArray();
  }
  if (found.next) json.Text("next_page_token", EncodePlace(*found.next));
  json.EndObject();
  return answer;
}

constexpr MlflowCall kRunCalls[] = {
    {"POST", "/2.0/mlflow/runs/create", "runs.create", Access::kSubmit, Create},
    {"POST", "/2.0/mlflow/runs/update", "runs.update", Access::kSubmit, Update},
    {"POST", "/2.0/mlflow/runs/delete", "runs.delete", Access::kSubmit, Delete},
    {"POST", "/2.0/mlflow/runs/restore", "runs.restore", Access::kSubmit, Restore},
    {"GET", "/2.0/mlflow/runs/get", "runs.get", Access::kRead, Get, false, nullptr, GetStale},
    {"POST", "/2.0/mlflow/runs/search", "runs.search", Access::kRead, Search, true},
    {"POST", "/2.0/mlflow/runs/log-parameter", "runs.log_parameter", Access::kSubmit, LogParam},
    {"POST", "/2.0/mlflow/runs/set-tag", "runs.set_tag", Access::kSubmit, SetTag},
    {"POST", "/2.0/mlflow/runs/delete-tag", "runs.delete_tag", Access::kSubmit, DeleteTag},
    {"POST", "/2.0/mlflow/runs/log-model", "runs.log_model", Access::kSubmit, LogModel},
    {"POST", "/2.0/mlflow/runs/log-inputs", "runs.log_inputs", Access::kSubmit, LogInputs},
    {"POST", "/2.0/mlflow/runs/outputs", "runs.outputs", Access::kSubmit, LogOutputs},
};

}  // namespace

std::optional<JobId> Mlflow::JobOf(const Call& call) const {
  if (!call.caller.attempt) return std::nullopt;
  return context.engine.JobOf(*call.caller.attempt);
}

Result<ViewType> ReadView(const Fields& fields, std::string_view name) {
  const Json* value = fields.Find(name);
  if (value == nullptr) return ViewType::kActive;
  const std::string text = value->is_string() ? value->get<std::string>() : DumpJson(*value);
  if (text == "ACTIVE_ONLY" || text == "1") return ViewType::kActive;
  if (text == "DELETED_ONLY" || text == "2") return ViewType::kDeleted;
  if (text == "ALL" || text == "3") return ViewType::kAll;
  return InvalidValue(name, *value, "It must be ACTIVE_ONLY, DELETED_ONLY or ALL.");
}

std::span<const MlflowCall> RunCalls() { return kRunCalls; }

}  // namespace athanor
