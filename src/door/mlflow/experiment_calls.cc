// MLflow's experiments.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/io/files.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/validate.h"
#include "door/native/artifact_places.h"

namespace athanor {
namespace {

constexpr size_t kMostExperiments = 50'000;
constexpr size_t kMostExperimentTag = 20'000;
constexpr size_t kMostDatasetExperiments = 20;

Result<int64_t> IdOf(const Fields& fields) {
  ATHANOR_TRY(const std::string text, fields.Needed("experiment_id"));
  int64_t id = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id);
  if (read.ec == std::errc() && read.ptr == end) return id;
  return MlflowFail("RESOURCE_DOES_NOT_EXIST",
                    fmt::format("No Experiment with id={} exists", Printable(text.substr(0, 100))));
}

void WriteExperiment(JsonWriter& json, const Experiment& experiment) {
  const ExperimentRow& row = experiment.row;
  json.BeginObject();
  json.Text("experiment_id", std::to_string(row.id));
  json.Text("name", row.name);
  json.Text("artifact_location", row.location);
  json.Text("lifecycle_stage", row.deleted ? "deleted" : "active");
  json.Int("last_update_time", row.updated_ms);
  json.Int("creation_time", row.created_ms);
  WritePairs(json, "tags", experiment.tags);
  json.EndObject();
}

Answer OneExperiment(const Experiment& experiment) {
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("experiment");
  WriteExperiment(json, experiment);
  json.EndObject();
  return answer;
}

Answer Kept(RunBatch batch) { return {"{}", std::move(batch)}; }

// Where artifacts go that are not stored here: only places that a client can reach itself. A
// relative path is relative to where this server was started, as with MLflow's own.
Result<std::string> LocationOf(const Fields& fields) {
  ATHANOR_TRY(std::string location, fields.Text("artifact_location"));
  if (location.empty()) return location;
  ATHANOR_CHECK_OK(CheckLength(location, 2000, "artifact_location"));
  if (location.find("..") != std::string::npos) {
    return InvalidParameter("Invalid artifact location: '..' is not allowed");
  }
  const auto scheme = SchemeOf(location);
  if (scheme == "runs") {
    return InvalidParameter(fmt::format("Artifact location cannot be a runs:/ URI. Given: '{}'",
                                        Printable(location.substr(0, 200))));
  }
  // In the path of a file they are characters as any other.
  if (location.find_first_of(scheme.empty() || scheme == "file" ? "#" : "#;") !=
      std::string::npos) {
    return InvalidParameter("'artifact_location' URL can't include fragments or params.");
  }
  if (!scheme.empty() || StartsWith(location, "/")) return location;
  char here[PATH_MAX];
  if (::getcwd(here, sizeof here) == nullptr) return FailErrno("find the working directory", errno);
  return PlainPath(std::string(here) + "/" + location);
}

Result<Answer> Create(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const std::string name, fields.Needed("name"));
  ATHANOR_CHECK_OK(CheckExperimentName(name));
  ATHANOR_TRY(const std::string location, LocationOf(fields));
  ATHANOR_TRY(const auto tags, fields.Pairs("tags"));
  for (const auto& [key, value] : tags) {
    ATHANOR_CHECK_OK(CheckMlflowKey(key, "tags.key"));
    ATHANOR_CHECK_OK(CheckLength(value, kMostExperimentTag, "value"));
  }
  int64_t id = 0;
  ATHANOR_TRY(auto batch,
              mlflow.context.runs.AddExperiment(name, location, tags, mlflow.Now(), id));
  if (const auto job = mlflow.JobOf(call)) mlflow.named_experiment[*job] = id;
  return Answer{fmt::format("{{\"experiment_id\":\"{}\"}}", id), std::move(batch)};
}

Result<Answer> Get(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const int64_t id, IdOf(fields));
  ATHANOR_TRY(const auto experiment, mlflow.context.runs.FindExperiment(id));
  // A client looks at the default experiment also when its script named none.
  if (const auto job = mlflow.JobOf(call); job && id != 0) mlflow.named_experiment[*job] = id;
  return OneExperiment(experiment);
}

Result<Answer> GetByName(Mlflow& mlflow, const Fields& fields, const Call& call) {
  ATHANOR_TRY(const std::string name, fields.Needed("experiment_name"));
  ATHANOR_TRY(const auto experiment, mlflow.context.runs.ExperimentNamed(name));
  if (const auto job = mlflow.JobOf(call)) mlflow.named_experiment[*job] = experiment.row.id;
  return OneExperiment(experiment);
}

// The experiment at once, its runs some thousand at a time.
Result<Answer> SetDeleted(Mlflow& mlflow, const Fields& fields, bool deleted) {
  ATHANOR_TRY(const int64_t id, IdOf(fields));
  const int64_t now = mlflow.Now();
  RunBook& book = mlflow.context.runs;
  Answer answer;
  ATHANOR_TRY(answer.batch, book.SetExperimentDeleted(id, deleted, now));
  answer.more = [&book, id, deleted, now, sweep = RunSweep()](RunBatch& next) mutable {
    if (sweep.done) return false;
    next = book.SweepRuns(id, deleted, now, sweep);
    return true;
  };
  return answer;
}

Result<Answer> Delete(Mlflow& mlflow, const Fields& fields, const Call&) {
  return SetDeleted(mlflow, fields, true);
}

Result<Answer> Restore(Mlflow& mlflow, const Fields& fields, const Call&) {
  return SetDeleted(mlflow, fields, false);
}

Result<Answer> Update(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const int64_t id, IdOf(fields));
  ATHANOR_TRY(const std::string name, fields.Needed("new_name"));
  ATHANOR_CHECK_OK(CheckExperimentName(name));
  ATHANOR_TRY(auto batch, mlflow.context.runs.RenameExperiment(id, name, mlflow.Now()));
  return Kept(std::move(batch));
}

Result<Answer> SetTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const int64_t id, IdOf(fields));
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(const std::string value, fields.Text("value"));
  ATHANOR_CHECK_OK(CheckMlflowKey(key, "key"));
  ATHANOR_CHECK_OK(CheckLength(value, kMostExperimentTag, "value"));
  ATHANOR_TRY(auto batch, mlflow.context.runs.TagExperiment(id, key, value, mlflow.Now()));
  return Kept(std::move(batch));
}

Result<Answer> DeleteTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const int64_t id, IdOf(fields));
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(auto batch, mlflow.context.runs.TagExperiment(id, key, std::nullopt, mlflow.Now()));
  return Kept(std::move(batch));
}

bool PassesAll(const Experiment& experiment, const std::vector<Clause>& filter) {
  return std::all_of(filter.begin(), filter.end(), [&](const Clause& clause) {
    if (clause.type == FieldType::kTag) {
      const auto at = experiment.tags.find(clause.key);
      if (at == experiment.tags.end()) return clause.comparator == Comparator::kIsNull;
      return Passes(clause, at->second);
    }
    if (clause.key == "name") return Passes(clause, experiment.row.name);
    return Passes(clause,
                  static_cast<double>(clause.key == "creation_time" ? experiment.row.created_ms
                                                                    : experiment.row.updated_ms));
  });
}

int Compare(const ExperimentRow& a, const ExperimentRow& b, const std::string& key) {
  const auto of = [](auto x, auto y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (key == "name") return of(a.name, b.name);
  if (key == "experiment_id") return of(a.id, b.id);
  return key == "creation_time" ? of(a.created_ms, b.created_ms) : of(a.updated_ms, b.updated_ms);
}

Result<Answer> Search(Mlflow& mlflow, const Fields& fields, const Call&) {
  if (fields.Find("max_results") == nullptr) {
    return InvalidValue("max_results", 0, "It must be at least 1.");
  }
  ATHANOR_TRY(const auto page, ReadPage(fields, 1000, kMostExperiments));
  ATHANOR_TRY(const std::string text, fields.Text("filter"));
  ATHANOR_TRY(const auto filter, ParseFilter(text, Searched::kExperiments));
  ATHANOR_TRY(const auto items, fields.Texts("order_by"));
  ATHANOR_TRY(auto order, ParseOrder(items, Searched::kExperiments));
  ATHANOR_TRY(const auto view, ReadView(fields, "view_type"));
  auto all = mlflow.context.runs.Experiments();
  std::erase_if(all, [&](const Experiment& e) {
    return (view != ViewType::kAll && e.row.deleted != (view == ViewType::kDeleted)) ||
           !PassesAll(e, filter);
  });
  const bool given = !order.empty();
  if (!given) order.push_back({FieldType::kAttribute, "creation_time", false});
  std::stable_sort(all.begin(), all.end(), [&](const Experiment& a, const Experiment& b) {
    for (const auto& one : order) {
      const int way = Compare(a.row, b.row, one.key);
      if (way != 0) return one.ascending ? way < 0 : way > 0;
    }
    return given ? a.row.id > b.row.id : a.row.id < b.row.id;
  });
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  const size_t begin = std::min(page.offset, all.size());
  const size_t end = begin + std::min(page.limit, all.size() - begin);
  if (begin < end) {
    json.Key("experiments");
    json.BeginArray();
    for (size_t i = begin; i < end; ++i) WriteExperiment(json, all[i]);
    json.EndArray();
  }
  if (end < all.size()) json.Text("next_page_token", PageToken(end));
  json.EndObject();
  return answer;
}

Result<Answer> SearchDatasets(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const auto ids, fields.Texts("experiment_ids"));
  if (ids.empty()) {
    return InvalidParameter("SearchDatasets request must specify at least one experiment_id.");
  }
  if (ids.size() > kMostDatasetExperiments) {
    return InvalidParameter(fmt::format(
        "SearchDatasets request cannot specify more than {} experiment_ids. Received {} "
        "experiment_ids.",
        kMostDatasetExperiments, ids.size()));
  }
  RunQuery query;
  query.experiments.emplace();
  for (const auto& id : ids) query.experiments->push_back(std::strtoll(id.c_str(), nullptr, 10));
  query.any_order = true;
  std::set<std::tuple<int64_t, std::string, std::string, std::string>> found;
  mlflow.context.runs.Peek(mlflow.context.runs.Search(query).runs, [&](const RunEntry& run) {
    for (const auto& input : run.more().inputs) {
      std::string context;
      if (const auto tags = ParseJson(input.tags); tags && tags->is_array()) {
        for (const auto& tag : *tags) {
          if (tag.value("key", "") == "mlflow.data.context") context = tag.value("value", "");
        }
      }
      found.emplace(run.experiment, input.name, input.digest, context);
    }
  });
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("dataset_summaries");
  json.BeginArray();
  size_t written = 0;
  for (const auto& [experiment, name, digest, context] : found) {
    if (++written > 1000) break;
    json.BeginObject();
    json.Text("experiment_id", std::to_string(experiment));
    json.Text("name", name);
    json.Text("digest", digest);
    if (!context.empty()) json.Text("context", context);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return answer;
}

constexpr MlflowCall kExperimentCalls[] = {
    {"POST", "/2.0/mlflow/experiments/create", "experiments.create", Access::kSubmit, Create},
    {"POST", "/2.0/mlflow/experiments/search", "experiments.search", Access::kRead, Search},
    {"GET", "/2.0/mlflow/experiments/search", "experiments.search_get", Access::kRead, Search},
    {"GET", "/2.0/mlflow/experiments/get", "experiments.get", Access::kRead, Get},
    {"GET", "/2.0/mlflow/experiments/get-by-name", "experiments.get_by_name", Access::kRead,
     GetByName},
    {"POST", "/2.0/mlflow/experiments/delete", "experiments.delete", Access::kSubmit, Delete},
    {"POST", "/2.0/mlflow/experiments/restore", "experiments.restore", Access::kSubmit, Restore},
    {"POST", "/2.0/mlflow/experiments/update", "experiments.update", Access::kSubmit, Update},
    {"POST", "/2.0/mlflow/experiments/set-experiment-tag", "experiments.set_tag", Access::kSubmit,
     SetTag},
    {"POST", "/2.0/mlflow/experiments/delete-experiment-tag", "experiments.delete_tag",
     Access::kSubmit, DeleteTag},
    {"POST", "/2.0/mlflow/experiments/search-datasets", "experiments.search_datasets",
     Access::kRead, SearchDatasets, true},
};

}  // namespace

std::span<const MlflowCall> ExperimentCalls() { return kExperimentCalls; }

}  // namespace athanor
