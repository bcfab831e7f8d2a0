// The models that runs log (MLflow 3): named by an id, found by what was logged with them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/model_metrics.h"
#include "door/mlflow/validate.h"
#include "job/friendly_name.h"

namespace athanor {
namespace {

constexpr std::string_view kStatus[] = {"LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY",
                                        "LOGGED_MODEL_UPLOAD_FAILED"};
constexpr size_t kUsualPage = 100;
constexpr size_t kMostPage = 50'000;

Result<Tags> TagsOf(const Fields& fields, std::string_view name, size_t most) {
  ATHANOR_TRY(const auto pairs, fields.Pairs(name));
  Tags tags;
  for (const auto& [key, value] : pairs) {
    ATHANOR_CHECK_OK(CheckMlflowKey(key, fmt::format("{}.key", name)));
    tags[key] = CutTo(value, most);
  }
  return tags;
}

void WriteModelMetric(JsonWriter& json, const std::string& model, const ModelMetric& metric) {
  json.BeginObject();
  json.Text("key", metric.key);
  json.Double("value", metric.value);
  json.Int("timestamp", metric.timestamp_ms);
  json.Int("step", metric.step);
  if (!metric.dataset_name.empty()) json.Text("dataset_name", metric.dataset_name);
  if (!metric.dataset_digest.empty()) json.Text("dataset_digest", metric.dataset_digest);
  json.Text("model_id", model);
  json.Text("run_id", metric.run_id);
  json.EndObject();
}

void WriteModel(JsonWriter& json, const LoggedModel& model) {
  const LoggedModelRow& row = model.row;
  json.BeginObject();
  json.Key("info");
  json.BeginObject();
  json.Text("model_id", row.id);
  json.Text("experiment_id", std::to_string(row.experiment));
  json.Text("name", row.name);
  json.Int("creation_timestamp_ms", row.created_ms);
  json.Int("last_updated_timestamp_ms", row.updated_ms);
  json.Text("artifact_uri", row.artifacts);
  json.Text("status", kStatus[static_cast<size_t>(std::clamp<int64_t>(row.status, 1, 3) - 1)]);
  if (!row.type.empty()) json.Text("model_type", row.type);
  if (!row.run_id.empty()) json.Text("source_run_id", row.run_id);
  WritePairs(json, "tags", PlainTags(model));
  json.EndObject();
  json.Key("data");
  json.BeginObject();
  WritePairs(json, "params", model.params);
  if (const auto metrics = MetricsOf(model); !metrics.empty()) {
    json.Key("metrics");
    json.BeginArray();
    for (const auto& metric : metrics) WriteModelMetric(json, row.id, metric);
    json.EndArray();
  }
  json.EndObject();
  json.EndObject();
}

Result<Answer> One(const Mlflow& mlflow, const std::string& id, RunBatch batch = {},
                   bool also_deleted = false) {
  ATHANOR_TRY(const auto* model, mlflow.context.models.FindLogged(id, also_deleted));
  Answer answer{"", std::move(batch)};
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("model");
  WriteModel(json, *model);
  json.EndObject();
  return answer;
}

Result<Answer> Create(Mlflow& mlflow, const Fields& fields, const Call& call) {
  LoggedModelRow row;
  row.id = "m-" + RandomHex(16);
  ATHANOR_TRY(row.experiment, fields.NeededInt("experiment_id"));
  ATHANOR_TRY(const auto experiment, mlflow.context.runs.FindExperiment(row.experiment));
  ATHANOR_TRY(row.name, fields.Text("name"));
  ATHANOR_CHECK_OK(CheckLoggedModelName(row.name));
  if (row.name.empty()) row.name = FriendlyName(NewUlid());
  ATHANOR_TRY(row.type, fields.Text("model_type"));
  ATHANOR_TRY(row.run_id, fields.Text("source_run_id"));
  // What a job creates belongs to its run, so that the job may change it later.
  if (const auto job = mlflow.JobOf(call); job && row.run_id.empty())
    row.run_id = job->value.ToHex();
  row.artifacts = fmt::format("{}/models/{}/artifacts", experiment.row.location, row.id);
  row.created_ms = row.updated_ms = mlflow.Now();
  ATHANOR_TRY(const auto tags, TagsOf(fields, "tags", kMostTagChars));
  ATHANOR_TRY(const auto params, TagsOf(fields, "params", kMostParamChars));
  auto batch = mlflow.context.models.AddLogged(row, tags, params);
  return One(mlflow, row.id, std::move(batch));
}

Result<Answer> Get(Mlflow& mlflow, const Fields& fields, const Call& call) {
  return One(mlflow, call.captures["id"], {}, fields.Bool("allow_deleted"));
}

Result<Answer> Finish(Mlflow& mlflow, const Fields& fields, const Call& call) {
  const Json* status = fields.Find("status");
  if (status == nullptr) return InvalidParameter("Missing value for required parameter 'status'.");
  int64_t number = 0;
  if (status->is_number_integer()) number = status->get<int64_t>();
  for (int64_t i = 0; i < 3 && status->is_string(); ++i) {
    if (kStatus[i] == status->get<std::string>()) number = i + 1;
  }
  if (number < 1 || number > 3) {
    return InvalidValue("status", *status,
                        "It must be LOGGED_MODEL_PENDING, LOGGED_MODEL_READY or "
                        "LOGGED_MODEL_UPLOAD_FAILED.");
  }
  const auto& id = call.captures["id"];
  ATHANOR_TRY(auto batch, mlflow.context.models.SetLoggedStatus(id, number, mlflow.Now()));
  return One(mlflow, id, std::move(batch));
}

Result<Answer> Delete(Mlflow& mlflow, const Fields&, const Call& call) {
  ATHANOR_TRY(auto batch, mlflow.context.models.RemoveLogged(call.captures["id"], mlflow.Now()));
  return Answer{"{}", std::move(batch)};
}

Result<Answer> SetTags(Mlflow& mlflow, const Fields& fields, const Call& call) {
  const auto& id = call.captures["id"];
  ATHANOR_TRY(const auto tags, TagsOf(fields, "tags", kMostTagChars));
  ATHANOR_TRY(auto batch, mlflow.context.models.TagLogged(id, tags, mlflow.Now()));
  return One(mlflow, id, std::move(batch));
}

Result<Answer> DeleteTag(Mlflow& mlflow, const Fields&, const Call& call) {
  ATHANOR_TRY(auto batch, mlflow.context.models.UntagLogged(call.captures["id"],
                                                            call.captures["key"], mlflow.Now()));
  return Answer{"{}", std::move(batch)};
}

Result<Answer> LogParams(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const auto params, TagsOf(fields, "params", kMostParamChars));
  ATHANOR_TRY(auto batch,
              mlflow.context.models.ParamsOfLogged(call.captures["id"], params, mlflow.Now()));
  return Answer{"{}", std::move(batch)};
}

std::string AttributeOf(const LoggedModel& model, std::string_view key) {
  if (key == "name") return model.row.name;
  if (key == "model_id") return model.row.id;
  if (key == "model_type") return model.row.type;
  if (key == "source_run_id") return model.row.run_id;
  if (key == "experiment_id") return std::to_string(model.row.experiment);
  if (key == "status") {
    return std::string(
               kStatus[static_cast<size_t>(std::clamp<int64_t>(model.row.status, 1, 3) - 1)])
        .substr(std::string_view("LOGGED_MODEL_").size());
  }
  return "";
}

struct DatasetName {
  std::string name;
  std::string digest;  // empty: any
};

bool IsOn(const ModelMetric& metric, const DatasetName& dataset) {
  return metric.dataset_name == dataset.name &&
         (dataset.digest.empty() || metric.dataset_digest == dataset.digest);
}

// On any of the data sets; all metrics are on none.
bool IsOnOne(const ModelMetric& metric, const std::vector<DatasetName>& datasets) {
  return datasets.empty() || std::any_of(datasets.begin(), datasets.end(),
                                         [&](const auto& one) { return IsOn(metric, one); });
}

bool HasMetric(const LoggedModel& model, const std::vector<DatasetName>& datasets,
               const Clause* clause) {
  const auto metrics = MetricsOf(model);
  return std::any_of(metrics.begin(), metrics.end(), [&](const ModelMetric& metric) {
    if (!IsOnOne(metric, datasets)) return false;
    return clause == nullptr || (metric.key == clause->key && Passes(*clause, metric.value));
  });
}

// The newest value of a metric; none when the model has none on that data set.
std::optional<double> ValueOf(const LoggedModel& model, const std::string& key,
                              const DatasetName& dataset) {
  std::optional<ModelMetric> newest;
  for (auto& metric : MetricsOf(model)) {
    if (metric.key != key || (!dataset.name.empty() && !IsOn(metric, dataset))) continue;
    if (!newest || std::pair(metric.step, metric.timestamp_ms) >
                       std::pair(newest->step, newest->timestamp_ms)) {
      newest = std::move(metric);
    }
  }
  return newest ? std::optional(newest->value) : std::nullopt;
}

bool PassesOne(const LoggedModel& model, const Clause& clause,
               const std::vector<DatasetName>& datasets) {
  switch (clause.type) {
    case FieldType::kTag:
    case FieldType::kParam: {
      const Tags& tags = clause.type == FieldType::kTag ? model.tags : model.params;
      const auto at = tags.find(clause.key);
      if (at == tags.end()) return clause.comparator == Comparator::kIsNull;
      return Passes(clause, at->second);
    }
    case FieldType::kAttribute:
      if (clause.key == "creation_timestamp") {
        return Passes(clause, static_cast<double>(model.row.created_ms));
      }
      if (clause.key == "last_updated_timestamp") {
        return Passes(clause, static_cast<double>(model.row.updated_ms));
      }
      return Passes(clause, AttributeOf(model, clause.key));
    case FieldType::kMetric:
      return HasMetric(model, datasets, &clause);
    case FieldType::kDataset:
      return false;
  }
  return false;
}

struct Order {
  FieldType type = FieldType::kAttribute;
  std::string key;
  bool ascending = true;
  DatasetName dataset;  // of a metric; no name: any
};

// Below, at or above 0 as `a` comes before, with or after `b`. What lacks the metric comes last.
int Compare(const LoggedModel& a, const LoggedModel& b, const Order& order) {
  const int way = order.ascending ? 1 : -1;
  const auto by = [way](const auto& x, const auto& y) { return x < y ? -way : y < x ? way : 0; };
  if (order.type == FieldType::kMetric) {
    const auto x = ValueOf(a, order.key, order.dataset);
    const auto y = ValueOf(b, order.key, order.dataset);
    // Numbers, then NaN, then none, in both directions.
    const auto rank = [](const auto& v) { return !v ? 2 : *v != *v ? 1 : 0; };
    if (rank(x) != rank(y) || rank(x) != 0) return rank(x) - rank(y);
    return by(*x, *y);
  }
  if (order.type == FieldType::kParam || order.type == FieldType::kTag) {
    const Tags& of_a = order.type == FieldType::kTag ? a.tags : a.params;
    const Tags& of_b = order.type == FieldType::kTag ? b.tags : b.params;
    const auto x = of_a.find(order.key);
    const auto y = of_b.find(order.key);
    if (x == of_a.end() || y == of_b.end()) return (x == of_a.end()) - (y == of_b.end());
    return by(x->second, y->second);
  }
  if (order.key == "creation_timestamp") return by(a.row.created_ms, b.row.created_ms);
  if (order.key == "last_updated_timestamp") return by(a.row.updated_ms, b.row.updated_ms);
  return by(AttributeOf(a, order.key), AttributeOf(b, order.key));
}

Result<std::vector<Order>> OrderOf(const Fields& fields) {
  std::vector<Order> order;
  const Json* items = fields.Find("order_by");
  if (items == nullptr || !items->is_array()) return order;
  for (const auto& item : *items) {
    if (!item.is_object() || !item.contains("field_name") || !item["field_name"].is_string()) {
      return InvalidParameter("`field_name` must be specified in `order_by`");
    }
    ATHANOR_TRY(const auto one,
                ParseOrderBy(item["field_name"].get<std::string>(), Searched::kLoggedModels));
    const auto at = item.find("ascending");
    const bool ascending = at == item.end() || !at->is_boolean() || at->get<bool>();
    Order made{one.type, one.key, ascending, {}};
    const Fields rest(item);
    ATHANOR_TRY(made.dataset.name, rest.Text("dataset_name"));
    ATHANOR_TRY(made.dataset.digest, rest.Text("dataset_digest"));
    order.push_back(std::move(made));
  }
  return order;
}

Result<std::vector<DatasetName>> DatasetsOf(const Fields& fields) {
  std::vector<DatasetName> datasets;
  const Json* items = fields.Find("datasets");
  if (items == nullptr || !items->is_array()) return datasets;
  for (const auto& item : *items) {
    if (!item.is_object()) return InvalidValue("datasets", item, "It is not an object.");
    const Fields one(item);
    DatasetName dataset;
    ATHANOR_TRY(dataset.name, one.Needed("dataset_name"));
    ATHANOR_TRY(dataset.digest, one.Text("dataset_digest"));
    datasets.push_back(std::move(dataset));
  }
  return datasets;
}

Result<Answer> Search(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const auto page, ReadPage(fields, kUsualPage, kMostPage));
  ATHANOR_TRY(const auto ids, fields.Texts("experiment_ids"));
  ATHANOR_TRY(const std::string text, fields.Text("filter"));
  ATHANOR_TRY(const auto filter, ParseFilter(text, Searched::kLoggedModels));
  ATHANOR_TRY(const auto order, OrderOf(fields));
  ATHANOR_TRY(const auto datasets, DatasetsOf(fields));
  std::vector<const LoggedModel*> found;
  for (const auto& [id, model] : mlflow.context.models.logged()) {
    const auto experiment = std::to_string(model.row.experiment);
    if (model.row.deleted || std::find(ids.begin(), ids.end(), experiment) == ids.end()) continue;
    if (!datasets.empty() && !HasMetric(model, datasets, nullptr)) continue;
    const auto* one = &model;
    const bool passes = std::all_of(filter.begin(), filter.end(), [&](const Clause& clause) {
      return PassesOne(*one, clause, datasets);
    });
    if (passes) found.push_back(one);
  }
  std::sort(found.begin(), found.end(), [&](const auto* a, const auto* b) {
    for (const auto& one : order) {
      if (const int way = Compare(*a, *b, one); way != 0) return way < 0;
    }
    if (a->row.created_ms != b->row.created_ms) return a->row.created_ms > b->row.created_ms;
    return a->row.id < b->row.id;
  });
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  const size_t begin = std::min(page.offset, found.size());
  const size_t end = begin + std::min(page.limit, found.size() - begin);
  if (begin < end) {
    json.Key("models");
    json.BeginArray();
    for (size_t i = begin; i < end; ++i) WriteModel(json, *found[i]);
    json.EndArray();
  }
  if (end < found.size()) json.Text("next_page_token", PageToken(end));
  json.EndObject();
  return answer;
}

constexpr MlflowCall kLoggedModelCalls[] = {
    {"POST", "/2.0/mlflow/logged-models", "logged.create", Access::kSubmit, Create},
    {"POST", "/2.0/mlflow/logged-models/search", "logged.search", Access::kRead, Search},
    {"GET", "/2.0/mlflow/logged-models/{id}", "logged.get", Access::kRead, Get},
    {"PATCH", "/2.0/mlflow/logged-models/{id}", "logged.finish", Access::kSubmit, Finish},
    {"DELETE", "/2.0/mlflow/logged-models/{id}", "logged.delete", Access::kSubmit, Delete},
    {"PATCH", "/2.0/mlflow/logged-models/{id}/tags", "logged.set_tags", Access::kSubmit, SetTags},
    {"DELETE", "/2.0/mlflow/logged-models/{id}/tags/{key}", "logged.delete_tag", Access::kSubmit,
     DeleteTag},
    {"POST", "/2.0/mlflow/logged-models/{id}/params", "logged.log_params", Access::kSubmit,
     LogParams},
};

}  // namespace

std::span<const MlflowCall> LoggedModelCalls() { return kLoggedModelCalls; }

}  // namespace athanor
