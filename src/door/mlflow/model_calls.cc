// MLflow's model registry.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/mlflow/calls.h"
#include "door/mlflow/validate.h"
#include "door/native/artifact_places.h"

namespace athanor {
namespace {

constexpr std::string_view kStages[] = {"None", "Staging", "Production", "Archived"};
constexpr std::string_view kPromptTag = "mlflow.prompt.is_prompt";
constexpr size_t kMostModelTag = 100'000;
constexpr int kMostEscapes = 8;

Answer Kept(RunBatch batch) { return {"{}", std::move(batch)}; }

Result<std::string> NameOf(const Fields& fields) {
  ATHANOR_TRY(std::string name, fields.Needed("name"));
  ATHANOR_CHECK_OK(CheckModelName(name));
  return name;
}

Result<int64_t> VersionOf(const Fields& fields) {
  ATHANOR_TRY(const std::string needed, [&]() -> Result<std::string> {
    const Json* value = fields.Find("version");
    if (value != nullptr && value->is_number()) return DumpJson(*value);
    return fields.Needed("version");
  }());
  auto number = IntOf(Json(needed), "version");
  if (number) return *number;
  return InvalidParameter(fmt::format("Parameter 'version' must be an integer, got '{}'.",
                                      Printable(needed.substr(0, 200))));
}

Result<Tags> TagsOf(const Fields& fields) {
  ATHANOR_TRY(const auto pairs, fields.Pairs("tags"));
  Tags tags;
  for (const auto& [key, value] : pairs) {
    ATHANOR_CHECK_OK(CheckMlflowKey(key, "key"));
    ATHANOR_CHECK_OK(CheckLength(value, kMostModelTag, "value"));
    tags[key] = value;
  }
  return tags;
}

void WriteVersion(JsonWriter& json, const RegisteredModel& model, const ModelVersion& version) {
  const VersionRow& row = version.row;
  json.BeginObject();
  json.Text("name", row.name);
  json.Text("version", std::to_string(row.version));
  json.Int("creation_timestamp", row.created_ms);
  json.Int("last_updated_timestamp", row.updated_ms);
  json.Text("current_stage", row.stage);
  json.Text("description", row.description);
  json.Text("source", row.source);
  json.Text("run_id", row.run_id);
  json.Text("status", "READY");
  if (!row.run_link.empty()) json.Text("run_link", row.run_link);
  if (!row.model_id.empty()) json.Text("model_id", row.model_id);
  WritePairs(json, "tags", version.tags);
  std::vector<std::string_view> aliases;
  for (const auto& [alias, number] : model.aliases) {
    if (number == row.version) aliases.push_back(alias);
  }
  if (!aliases.empty()) {
    json.Key("aliases");
    json.BeginArray();
    for (const auto alias : aliases) json.Text(alias);
    json.EndArray();
  }
  json.EndObject();
}

// The newest of each stage, or of those asked for.
std::vector<const ModelVersion*> Latest(const RegisteredModel& model,
                                        const std::vector<std::string>& stages) {
  std::map<std::string_view, const ModelVersion*> newest;
  for (const auto& [number, version] : model.versions) newest[version.row.stage] = &version;
  std::vector<const ModelVersion*> found;
  for (const auto& [stage, version] : newest) {
    const bool asked = stages.empty() ||
                       std::any_of(stages.begin(), stages.end(),
                                   [its = stage](auto& s) { return ToLower(s) == ToLower(its); });
    if (asked) found.push_back(version);
  }
  return found;
}

void WriteVersions(JsonWriter& json, std::string_view name, const RegisteredModel& model,
                   const std::vector<const ModelVersion*>& versions) {
  if (versions.empty()) return;
  json.Key(name);
  json.BeginArray();
  for (const auto* version : versions) WriteVersion(json, model, *version);
  json.EndArray();
}

void WriteModel(JsonWriter& json, const RegisteredModel& model) {
  json.BeginObject();
  json.Text("name", model.row.name);
  json.Int("creation_timestamp", model.row.created_ms);
  json.Int("last_updated_timestamp", model.row.updated_ms);
  json.Text("description", model.row.description);
  WriteVersions(json, "latest_versions", model, Latest(model, {}));
  WritePairs(json, "tags", model.tags);
  if (!model.aliases.empty()) {
    json.Key("aliases");
    json.BeginArray();
    for (const auto& [alias, version] : model.aliases) {
      json.BeginObject();
      json.Text("alias", alias);
      json.Text("version", std::to_string(version));
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
}

Result<Answer> OneModel(const Mlflow& mlflow, const std::string& name, RunBatch batch = {}) {
  ATHANOR_TRY(const auto* model, mlflow.context.models.Find(name));
  Answer answer{"", std::move(batch)};
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("registered_model");
  WriteModel(json, *model);
  json.EndObject();
  return answer;
}

Result<Answer> OneVersion(const Mlflow& mlflow, const std::string& name, int64_t number,
                          RunBatch batch = {}) {
  ATHANOR_TRY(const auto* model, mlflow.context.models.Find(name));
  ATHANOR_TRY(const auto* version, mlflow.context.models.FindVersion(name, number));
  Answer answer{"", std::move(batch)};
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Key("model_version");
  WriteVersion(json, *model, *version);
  json.EndObject();
  return answer;
}

Result<Answer> Create(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string description, fields.Text("description"));
  ATHANOR_TRY(const auto tags, TagsOf(fields));
  ATHANOR_TRY(auto batch, mlflow.context.models.Add(name, description, tags, mlflow.Now()));
  return OneModel(mlflow, name, std::move(batch));
}

Result<Answer> Rename(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string to, fields.Needed("new_name"));
  ATHANOR_CHECK_OK(CheckModelName(to));
  ATHANOR_TRY(auto batch, mlflow.context.models.Rename(name, to, mlflow.Now()));
  return OneModel(mlflow, to, std::move(batch));
}

Result<Answer> Update(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string description, fields.Text("description"));
  ATHANOR_TRY(auto batch, mlflow.context.models.Describe(name, description, mlflow.Now()));
  return OneModel(mlflow, name, std::move(batch));
}

Result<Answer> Delete(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(auto batch, mlflow.context.models.Remove(name));
  return Kept(std::move(batch));
}

Result<Answer> Get(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  return OneModel(mlflow, name);
}

Result<Answer> GetLatest(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const auto stages, fields.Texts("stages"));
  ATHANOR_TRY(const auto* model, mlflow.context.models.Find(name));
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  WriteVersions(json, "model_versions", *model, Latest(*model, stages));
  json.EndObject();
  return answer;
}

Result<Answer> SetTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(const std::string value, fields.Text("value"));
  ATHANOR_CHECK_OK(CheckMlflowKey(key, "key"));
  ATHANOR_CHECK_OK(CheckLength(value, kMostModelTag, "value"));
  ATHANOR_TRY(auto batch, mlflow.context.models.Tag(name, key, value));
  return Kept(std::move(batch));
}

Result<Answer> DeleteTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(auto batch, mlflow.context.models.Tag(name, key, std::nullopt));
  return Kept(std::move(batch));
}

Result<Answer> SetAlias(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string alias, fields.Needed("alias"));
  ATHANOR_CHECK_OK(CheckAlias(alias));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  ATHANOR_TRY(auto batch, mlflow.context.models.SetAlias(name, alias, version));
  return Kept(std::move(batch));
}

Result<Answer> DeleteAlias(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string alias, fields.Needed("alias"));
  ATHANOR_TRY(auto batch, mlflow.context.models.RemoveAlias(name, alias));
  return Kept(std::move(batch));
}

Result<Answer> GetAlias(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const std::string alias, fields.Needed("alias"));
  ATHANOR_TRY(const auto* version, mlflow.context.models.FindAlias(name, alias));
  return OneVersion(mlflow, name, version->row.version);
}

// A source that is not local must not lead out of its place, however often it is escaped.
Status CheckRemoteSource(const std::string& source) {
  std::string decoded = source;
  bool bad = false;
  for (int round = 0; round < kMostEscapes && !bad; ++round) {
    const auto parts = Split(ReplaceAll(decoded, "\\", "/"), '/');
    bad = std::find(parts.begin(), parts.end(), "..") != parts.end() ||
          decoded.find('\0') != std::string::npos;
    const auto next = UrlDecode(decoded);
    if (!next || *next == decoded) break;
    decoded = *next;
  }
  if (!bad) return Ok();
  return InvalidParameter(fmt::format(
      "Invalid model version source: '{}'. If supplying a source as an http, https, local file "
      "path, ftp, objectstore, or mlflow-artifacts uri, an absolute path must be provided without "
      "relative path references present. Please provide an absolute path.",
      Printable(source.substr(0, 200))));
}

// A local one must be where the logged model or the run that it names stores its artifacts.
Status CheckLocalSource(const Mlflow& mlflow, const VersionRow& version) {
  const bool of_model = !version.model_id.empty();
  std::string artifacts;
  if (of_model) {
    ATHANOR_TRY(const auto* model, mlflow.context.models.FindLogged(version.model_id));
    artifacts = model->row.artifacts;
  } else if (const auto run = JobId::Parse(version.run_id)) {
    artifacts = mlflow.context.runs.ArtifactsOf(*run);
  }
  const auto source = LocalPathOf(version.source);
  const auto place = LocalPathOf(artifacts);
  if (source && place) {
    const std::string base = PlainPath(*place);
    const std::string path = PlainPath(*source);
    if (path == base || StartsWith(path, base + "/")) return Ok();
  }
  return InvalidParameter(fmt::format(
      "Invalid model version source: '{}'. To use a local path as a model version source, the {} "
      "request parameter has to be specified and the local path has to be contained within the "
      "artifact directory of the run specified by the {}.",
      Printable(version.source.substr(0, 200)), of_model ? "model_id" : "run_id",
      of_model ? "model_id" : "run_id"));
}

Status CheckSource(const Mlflow& mlflow, const VersionRow& version, bool prompt) {
  const auto scheme = SchemeOf(version.source);
  if (scheme == "file" && !LocalPathOf(version.source)) {
    return MlflowFail("INTERNAL_ERROR",
                      Printable(version.source.substr(0, 200)) +
                          " is not a valid remote uri. For remote access on windows, please "
                          "consider using a different scheme such as SMB (e.g. "
                          "smb://<hostname>/<path>).");
  }
  const bool local = scheme == "file" || scheme.empty();
  if (!prompt) return local ? CheckLocalSource(mlflow, version) : CheckRemoteSource(version.source);
  // A prompt's source is a word that leads nowhere.
  if (scheme == "file" || StartsWith(version.source, "/")) {
    return InvalidParameter(
        fmt::format("Invalid prompt source: '{}'. Local source paths are not "
                    "allowed for prompts.",
                    Printable(version.source.substr(0, 200))));
  }
  return local ? Ok() : CheckRemoteSource(version.source);
}

Result<Answer> CreateVersion(Mlflow& mlflow, const Fields& fields, const Call&) {
  VersionRow version;
  ATHANOR_TRY(version.name, NameOf(fields));
  ATHANOR_TRY(version.source, fields.Needed("source"));
  ATHANOR_TRY(version.run_id, fields.Text("run_id"));
  ATHANOR_TRY(version.run_link, fields.Text("run_link"));
  ATHANOR_TRY(version.description, fields.Text("description"));
  ATHANOR_TRY(version.model_id, fields.Text("model_id"));
  ATHANOR_TRY(const auto tags, TagsOf(fields));
  ATHANOR_CHECK_OK(CheckSource(mlflow, version, tags.contains(std::string(kPromptTag))));
  const std::string name = version.name;
  int64_t made = 0;
  ATHANOR_TRY(auto batch,
              mlflow.context.models.AddVersion(std::move(version), tags, mlflow.Now(), made));
  return OneVersion(mlflow, name, made, std::move(batch));
}

Result<Answer> UpdateVersion(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  ATHANOR_TRY(const std::string description, fields.Text("description"));
  ATHANOR_TRY(auto batch,
              mlflow.context.models.DescribeVersion(name, version, description, mlflow.Now()));
  return OneVersion(mlflow, name, version, std::move(batch));
}

Result<Answer> MoveVersion(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  ATHANOR_TRY(const std::string asked, fields.Needed("stage"));
  const auto stage = std::find_if(std::begin(kStages), std::end(kStages),
                                  [&](auto known) { return ToLower(known) == ToLower(asked); });
  if (stage == std::end(kStages)) {
    return InvalidParameter(
        fmt::format("Invalid Model Version stage: {}. Value must be one of "
                    "None, Staging, Production, Archived.",
                    Printable(asked)));
  }
  ATHANOR_TRY(auto batch, mlflow.context.models.MoveVersion(
                              name, version, std::string(*stage),
                              fields.Bool("archive_existing_versions"), mlflow.Now()));
  return OneVersion(mlflow, name, version, std::move(batch));
}

Result<Answer> DeleteVersion(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  ATHANOR_TRY(auto batch, mlflow.context.models.RemoveVersion(name, version, mlflow.Now()));
  return Kept(std::move(batch));
}

Result<Answer> GetVersion(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  return OneVersion(mlflow, name, version);
}

Result<Answer> DownloadUri(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t number, VersionOf(fields));
  ATHANOR_TRY(const auto* version, mlflow.context.models.FindVersion(name, number));
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  json.Text("artifact_uri", version->place());
  json.EndObject();
  return answer;
}

Result<Answer> SetVersionTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(const std::string value, fields.Text("value"));
  ATHANOR_CHECK_OK(CheckMlflowKey(key, "key"));
  ATHANOR_CHECK_OK(CheckLength(value, kMostModelTag, "value"));
  ATHANOR_TRY(auto batch, mlflow.context.models.TagVersion(name, version, key, value));
  return Kept(std::move(batch));
}

Result<Answer> DeleteVersionTag(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const std::string name, NameOf(fields));
  ATHANOR_TRY(const int64_t version, VersionOf(fields));
  ATHANOR_TRY(const std::string key, fields.Needed("key"));
  ATHANOR_TRY(auto batch, mlflow.context.models.TagVersion(name, version, key, std::nullopt));
  return Kept(std::move(batch));
}

bool PassesTag(const Tags& tags, const Clause& clause) {
  const auto at = tags.find(clause.key);
  if (at == tags.end()) return clause.comparator == Comparator::kIsNull;
  return Passes(clause, at->second);
}

Result<Answer> Search(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const auto page, ReadPage(fields, 100, 1000));
  ATHANOR_TRY(const std::string text, fields.Text("filter"));
  ATHANOR_TRY(const auto filter, ParseFilter(text, Searched::kModels));
  ATHANOR_TRY(const auto items, fields.Texts("order_by"));
  ATHANOR_TRY(const auto order, ParseOrder(items, Searched::kModels));
  // Prompts are models of a kind that is shown only to those who ask.
  const bool prompts = std::any_of(filter.begin(), filter.end(),
                                   [](const Clause& c) { return c.key == kPromptTag; });
  std::vector<const RegisteredModel*> found;
  for (const auto& entry : mlflow.context.models.models()) {
    const auto& name = entry.first;
    const auto& model = entry.second;
    if (!prompts && model.tags.contains(std::string(kPromptTag))) continue;
    const bool passes = std::all_of(filter.begin(), filter.end(), [&](const Clause& clause) {
      if (clause.type != FieldType::kTag) return Passes(clause, name);
      // Clients that want no prompts say so; a model without the tag is none.
      const bool not_prompt =
          clause.key == kPromptTag && clause.comparator == Comparator::kNotEqual;
      return PassesTag(model.tags, clause) || (not_prompt && !model.tags.contains(clause.key));
    });
    if (passes) found.push_back(&model);
  }
  std::stable_sort(found.begin(), found.end(), [&](const auto* a, const auto* b) {
    for (const auto& one : order) {
      int way = 0;
      if (one.key == "name") {
        way = a->row.name.compare(b->row.name);
      } else {
        const bool created = one.key == "creation_timestamp";
        const int64_t x = created ? a->row.created_ms : a->row.updated_ms;
        const int64_t y = created ? b->row.created_ms : b->row.updated_ms;
        way = x < y ? -1 : x > y ? 1 : 0;
      }
      if (way != 0) return one.ascending ? way < 0 : way > 0;
    }
    return false;  // by name, as they come
  });
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  const size_t begin = std::min(page.offset, found.size());
  const size_t end = begin + std::min(page.limit, found.size() - begin);
  if (begin < end) {
    json.Key("registered_models");
    json.BeginArray();
    for (size_t i = begin; i < end; ++i) WriteModel(json, *found[i]);
    json.EndArray();
  }
  if (end < found.size()) json.Text("next_page_token", PageToken(end));
  json.EndObject();
  return answer;
}

bool PassesVersion(const ModelVersion& version, const Clause& clause) {
  if (clause.type == FieldType::kTag) return PassesTag(version.tags, clause);
  if (clause.key == "version_number") {
    return Passes(clause, static_cast<double>(version.row.version));
  }
  if (clause.key == "name") return Passes(clause, version.row.name);
  return Passes(clause, clause.key == "run_id" ? version.row.run_id : version.row.source);
}

Result<Answer> SearchVersions(Mlflow& mlflow, const Fields& fields, const Call&) {
  ATHANOR_TRY(const auto page, ReadPage(fields, 10'000, 200'000));
  ATHANOR_TRY(const std::string text, fields.Text("filter"));
  ATHANOR_TRY(const auto filter, ParseFilter(text, Searched::kVersions));
  ATHANOR_TRY(const auto items, fields.Texts("order_by"));
  ATHANOR_TRY(const auto order, ParseOrder(items, Searched::kVersions));
  std::vector<std::pair<const RegisteredModel*, const ModelVersion*>> found;
  for (const auto& [name, model] : mlflow.context.models.models()) {
    for (auto at = model.versions.rbegin(); at != model.versions.rend(); ++at) {
      const bool passes = std::all_of(filter.begin(), filter.end(), [&](const Clause& clause) {
        return PassesVersion(at->second, clause);
      });
      if (passes) found.emplace_back(&model, &at->second);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    const VersionRow& x = a.second->row;
    const VersionRow& y = b.second->row;
    if (order.empty() && x.updated_ms != y.updated_ms) return x.updated_ms > y.updated_ms;
    for (const auto& one : order) {
      const auto of = [](auto p, auto q) { return p < q ? -1 : q < p ? 1 : 0; };
      const int way = one.key == "name"                 ? of(x.name, y.name)
                      : one.key == "version_number"     ? of(x.version, y.version)
                      : one.key == "creation_timestamp" ? of(x.created_ms, y.created_ms)
                                                        : of(x.updated_ms, y.updated_ms);
      if (way != 0) return one.ascending ? way < 0 : way > 0;
    }
    return false;  // by name, newest version first, as they come
  });
  Answer answer;
  answer.body.clear();
  JsonWriter json(answer.body);
  json.BeginObject();
  const size_t begin = std::min(page.offset, found.size());
  const size_t end = begin + std::min(page.limit, found.size() - begin);
  if (begin < end) {
    json.Key("model_versions");
    json.BeginArray();
    for (size_t i = begin; i < end; ++i) WriteVersion(json, *found[i].first, *found[i].second);
    json.EndArray();
  }
  if (end < found.size()) json.Text("next_page_token", PageToken(end));
  json.EndObject();
  return answer;
}

constexpr MlflowCall kModelCalls[] = {
    {"POST", "/2.0/mlflow/registered-models/create", "models.create", Access::kSubmit, Create},
    {"POST", "/2.0/mlflow/registered-models/rename", "models.rename", Access::kSubmit, Rename},
    {"PATCH", "/2.0/mlflow/registered-models/update", "models.update", Access::kSubmit, Update},
    {"DELETE", "/2.0/mlflow/registered-models/delete", "models.delete", Access::kSubmit, Delete},
    {"GET", "/2.0/mlflow/registered-models/get", "models.get", Access::kRead, Get},
    {"GET", "/2.0/mlflow/registered-models/search", "models.search", Access::kRead, Search},
    {"POST", "/2.0/mlflow/registered-models/get-latest-versions", "models.latest", Access::kRead,
     GetLatest},
    {"GET", "/2.0/mlflow/registered-models/get-latest-versions", "models.latest_get", Access::kRead,
     GetLatest},
    {"POST", "/2.0/mlflow/registered-models/set-tag", "models.set_tag", Access::kSubmit, SetTag},
    {"DELETE", "/2.0/mlflow/registered-models/delete-tag", "models.delete_tag", Access::kSubmit,
     DeleteTag},
    {"POST", "/2.0/mlflow/registered-models/alias", "models.set_alias", Access::kSubmit, SetAlias},
    {"DELETE", "/2.0/mlflow/registered-models/alias", "models.delete_alias", Access::kSubmit,
     DeleteAlias},
    {"GET", "/2.0/mlflow/registered-models/alias", "models.get_alias", Access::kRead, GetAlias},
    {"POST", "/2.0/mlflow/model-versions/create", "versions.create", Access::kSubmit,
     CreateVersion},
    {"PATCH", "/2.0/mlflow/model-versions/update", "versions.update", Access::kSubmit,
     UpdateVersion},
    {"POST", "/2.0/mlflow/model-versions/transition-stage", "versions.stage", Access::kSubmit,
     MoveVersion},
    {"DELETE", "/2.0/mlflow/model-versions/delete", "versions.delete", Access::kSubmit,
     DeleteVersion},
    {"GET", "/2.0/mlflow/model-versions/get", "versions.get", Access::kRead, GetVersion},
    {"GET", "/2.0/mlflow/model-versions/search", "versions.search", Access::kRead, SearchVersions},
    {"GET", "/2.0/mlflow/model-versions/get-download-uri", "versions.download_uri", Access::kRead,
     DownloadUri},
    {"POST", "/2.0/mlflow/model-versions/set-tag", "versions.set_tag", Access::kSubmit,
     SetVersionTag},
    {"DELETE", "/2.0/mlflow/model-versions/delete-tag", "versions.delete_tag", Access::kSubmit,
     DeleteVersionTag},
};

}  // namespace

std::span<const MlflowCall> ModelCalls() { return kModelCalls; }

}  // namespace athanor
