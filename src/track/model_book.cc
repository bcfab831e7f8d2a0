#include "track/model_book.h"

#include <algorithm>

#include "base/text/format.h"
#include "base/text/json_writer.h"
#include "base/text/text.h"

namespace athanor {
namespace {

void AddTags(RunBatch& batch, LabelKind kind, const std::string& owner, const Tags& tags) {
  for (const auto& [key, value] : tags) batch.labels.push_back({kind, owner, key, value});
}

// Sets or removes a tag and returns the change; to remove one that is not there is no error.
Result<RunBatch> ChangeTag(Tags& tags, LabelKind kind, const std::string& owner,
                           const std::string& key, std::optional<std::string> value) {
  if (value) {
    tags[key] = *value;
  } else {
    tags.erase(key);
  }
  RunBatch batch;
  batch.labels.push_back({kind, owner, key, std::move(value)});
  return batch;
}

constexpr std::string_view kLogged = "m-";  // what ids of logged models begin with
constexpr std::string_view kModels = "models:/";
constexpr char kLast[] = "last";          // note: RegisteredModel::last
constexpr char kLocation[] = "location";  // note: ModelVersion::location
constexpr char kVersionsTag[] = "mlflow.modelVersions";

// The tag by which a logged model says which versions were made of it, one more; spaced as
// MLflow's own, which its clients compare.
std::string WithVersion(const std::string& tag, const std::string& name, int64_t version) {
  std::string entry = "{\"name\": ";
  AppendJsonText(entry, name);
  entry += fmt::format(", \"version\": {}}}", version);
  const auto list = Trim(tag);
  if (list.size() < 4 || list.front() != '[' || list.back() != ']') return "[" + entry + "]";
  return fmt::format("{}, {}]", list.substr(0, list.size() - 1), entry);
}

tl::unexpected<Error> NoVersion(const std::string& name, int64_t version) {
  return Fail(ErrorCode::kNotFound, fmt::format("Model Version (name={}, version={}) not found",
                                                Printable(name), version));
}

}  // namespace

void ModelBook::Load(const RunBatch& all) {
  models_.clear();
  logged_.clear();
  for (const auto& row : all.models) models_[row.name].row = row;
  for (const auto& row : all.versions) {
    if (const auto at = models_.find(row.name); at != models_.end()) {
      at->second.versions[row.version].row = row;
    }
  }
  for (const auto& row : all.logged) logged_[row.id].row = row;
  for (const auto& label : all.labels) {
    if (!label.value) continue;
    if (label.kind == LabelKind::kLoggedTag || label.kind == LabelKind::kLoggedParam) {
      const auto at = logged_.find(label.owner);
      if (at == logged_.end()) continue;
      auto& tags = label.kind == LabelKind::kLoggedTag ? at->second.tags : at->second.params;
      tags[label.key] = *label.value;
    } else if (label.kind == LabelKind::kVersionTag || label.kind == LabelKind::kVersionNote) {
      const size_t slash = label.owner.rfind('/');
      const auto at = models_.find(label.owner.substr(0, slash));
      if (at == models_.end() || slash == std::string::npos) continue;
      const auto version =
          at->second.versions.find(std::strtoll(label.owner.c_str() + slash + 1, nullptr, 10));
      if (version == at->second.versions.end()) continue;
      if (label.kind == LabelKind::kVersionTag) {
        version->second.tags[label.key] = *label.value;
      } else if (label.key == kLocation) {
        version->second.location = *label.value;
      }
    } else if (label.kind == LabelKind::kModelTag || label.kind == LabelKind::kModelAlias ||
               label.kind == LabelKind::kModelNote) {
      const auto at = models_.find(label.owner);
      if (at == models_.end()) continue;
      const auto number = [&label] { return std::strtoll(label.value->c_str(), nullptr, 10); };
      if (label.kind == LabelKind::kModelTag) {
        at->second.tags[label.key] = *label.value;
      } else if (label.kind == LabelKind::kModelAlias) {
        at->second.aliases[label.key] = number();
      } else if (label.key == kLast) {
        at->second.last = number();
      }
    }
  }
}

Result<RegisteredModel*> ModelBook::Change(const std::string& name) {
  const auto at = models_.find(name);
  if (at != models_.end()) return &at->second;
  return Fail(ErrorCode::kNotFound,
              fmt::format("Registered Model with name={} not found", Printable(name)));
}

Result<ModelVersion*> ModelBook::ChangeVersion(const std::string& name, int64_t version) {
  const auto at = models_.find(name);
  if (at == models_.end()) return NoVersion(name, version);
  const auto found = at->second.versions.find(version);
  if (found == at->second.versions.end()) return NoVersion(name, version);
  return &found->second;
}

Result<const RegisteredModel*> ModelBook::Find(const std::string& name) const {
  ATHANOR_TRY(const RegisteredModel* model, const_cast<ModelBook*>(this)->Change(name));
  return model;
}

Result<const ModelVersion*> ModelBook::FindVersion(const std::string& name, int64_t version) const {
  ATHANOR_TRY(const ModelVersion* found,
              const_cast<ModelBook*>(this)->ChangeVersion(name, version));
  return found;
}

Result<const ModelVersion*> ModelBook::FindAlias(const std::string& name,
                                                 const std::string& alias) const {
  ATHANOR_TRY(const auto* model, Find(name));
  if (ToLower(alias) == "latest" && !model->versions.empty()) {
    return &model->versions.rbegin()->second;
  }
  const auto at = model->aliases.find(alias);
  if (at == model->aliases.end()) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("Registered model alias {} not found.", Printable(alias)));
  }
  return FindVersion(name, at->second);
}

Result<RunBatch> ModelBook::Add(const std::string& name, std::string description, const Tags& tags,
                                int64_t now_ms) {
  if (models_.contains(name)) {
    return Fail(ErrorCode::kConflict,
                fmt::format("Registered Model (name={}) already exists", Printable(name)));
  }
  RegisteredModel& model = models_[name];
  model.row = {name, std::move(description), now_ms, now_ms};
  model.tags = tags;
  RunBatch batch;
  batch.models.push_back(model.row);
  AddTags(batch, LabelKind::kModelTag, name, tags);
  return batch;
}

Result<RunBatch> ModelBook::Rename(const std::string& name, const std::string& to, int64_t now_ms) {
  ATHANOR_CHECK_OK(Change(name));
  if (models_.contains(to)) {
    return Fail(ErrorCode::kConflict,
                fmt::format("Registered Model (name={}) already exists", Printable(to)));
  }
  // Rows are stored by the model's name, so all of them are removed and written anew.
  RegisteredModel model = models_.at(name);
  ATHANOR_TRY(RunBatch batch, Remove(name));
  model.row.name = to;
  model.row.updated_ms = now_ms;
  batch.models.push_back(model.row);
  AddTags(batch, LabelKind::kModelTag, to, model.tags);
  for (const auto& [alias, version] : model.aliases) {
    batch.labels.push_back({LabelKind::kModelAlias, to, alias, std::to_string(version)});
  }
  for (auto& [number, version] : model.versions) {
    version.row.name = to;
    version.row.updated_ms = now_ms;
    batch.versions.push_back(version.row);
    AddTags(batch, LabelKind::kVersionTag, VersionOwner(to, number), version.tags);
    if (!version.location.empty()) {
      batch.labels.push_back(
          {LabelKind::kVersionNote, VersionOwner(to, number), kLocation, version.location});
    }
  }
  if (model.last != 0) {
    batch.labels.push_back({LabelKind::kModelNote, to, kLast, std::to_string(model.last)});
  }
  models_[to] = std::move(model);
  return batch;
}

Result<RunBatch> ModelBook::Describe(const std::string& name, std::string description,
                                     int64_t now_ms) {
  ATHANOR_TRY(auto* model, Change(name));
  model->row.description = std::move(description);
  model->row.updated_ms = now_ms;
  RunBatch batch;
  batch.models.push_back(model->row);
  return batch;
}

Result<RunBatch> ModelBook::Remove(const std::string& name) {
  ATHANOR_TRY(const auto* model, Change(name));
  RunBatch batch;
  for (const auto& [number, version] : model->versions) {
    batch.versions_gone.emplace_back(name, number);
  }
  batch.models_gone.push_back(name);
  models_.erase(name);
  return batch;
}

Result<RunBatch> ModelBook::Tag(const std::string& name, const std::string& key,
                                std::optional<std::string> value) {
  ATHANOR_TRY(auto* model, Change(name));
  return ChangeTag(model->tags, LabelKind::kModelTag, name, key, std::move(value));
}

Result<RunBatch> ModelBook::SetAlias(const std::string& name, const std::string& alias,
                                     int64_t version) {
  ATHANOR_CHECK_OK(ChangeVersion(name, version));
  ATHANOR_TRY(auto* model, Change(name));
  model->aliases[alias] = version;
  RunBatch batch;
  batch.labels.push_back({LabelKind::kModelAlias, name, alias, std::to_string(version)});
  return batch;
}

Result<RunBatch> ModelBook::RemoveAlias(const std::string& name, const std::string& alias) {
  ATHANOR_TRY(auto* model, Change(name));
  model->aliases.erase(alias);
  RunBatch batch;
  batch.labels.push_back({LabelKind::kModelAlias, name, alias, std::nullopt});
  return batch;
}

// Where the files of a version are; the run that made them is copied.
Result<std::string> ModelBook::Follow(VersionRow& version) const {
  const auto take_run = [&version](const std::string& run) {
    if (version.run_id.empty()) version.run_id = run;
  };
  if (!version.model_id.empty()) {
    ATHANOR_TRY(const auto* model, FindLogged(version.model_id));
    take_run(model->row.run_id);
  }
  if (!StartsWith(version.source, kModels)) return version.source;
  const std::string name(Trim(version.source.substr(kModels.size())));
  if (name.find_first_of("/@") == std::string::npos && StartsWith(name, kLogged)) {
    ATHANOR_TRY(const auto* model, FindLogged(name));
    take_run(model->row.run_id);
    return model->row.artifacts;
  }
  const size_t at = name.rfind('@');
  const size_t slash = name.rfind('/');
  if (at != std::string::npos) {
    ATHANOR_TRY(const auto* other, FindAlias(name.substr(0, at), name.substr(at + 1)));
    return other->place();
  }
  if (slash == std::string::npos) return version.source;
  char* end = nullptr;
  const int64_t number = std::strtoll(name.c_str() + slash + 1, &end, 10);
  if (*end != '\0') return version.source;  // a stage: whatever is in it when it is asked for
  ATHANOR_TRY(const auto* other, FindVersion(name.substr(0, slash), number));
  return other->place();
}

Result<RunBatch> ModelBook::AddVersion(VersionRow version, const Tags& tags, int64_t now_ms,
                                       int64_t& made) {
  ATHANOR_TRY(auto* model, Change(version.name));
  ATHANOR_TRY(std::string location, Follow(version));
  if (location == version.source) location.clear();
  // Numbers are not used again, also if the newest version was removed.
  made = std::max(model->last, model->versions.empty() ? 0 : model->versions.rbegin()->first) + 1;
  version.version = made;
  version.created_ms = version.updated_ms = now_ms;
  model->row.updated_ms = now_ms;
  RunBatch batch;
  batch.models.push_back(model->row);
  batch.versions.push_back(version);
  const auto owner = VersionOwner(version.name, made);
  AddTags(batch, LabelKind::kVersionTag, owner, tags);
  if (!location.empty()) {
    batch.labels.push_back({LabelKind::kVersionNote, owner, kLocation, location});
  }
  if (!version.model_id.empty()) {
    ATHANOR_TRY(auto* logged, ChangeLogged(version.model_id));
    auto& tag = logged->tags[kVersionsTag];
    tag = WithVersion(tag, version.name, made);
    batch.labels.push_back({LabelKind::kLoggedTag, version.model_id, kVersionsTag, tag});
  }
  model->versions[made] = {std::move(version), tags, std::move(location)};
  return batch;
}

Result<RunBatch> ModelBook::DescribeVersion(const std::string& name, int64_t version,
                                            std::string description, int64_t now_ms) {
  ATHANOR_TRY(auto* found, ChangeVersion(name, version));
  found->row.description = std::move(description);
  found->row.updated_ms = now_ms;
  RunBatch batch;
  batch.versions.push_back(found->row);
  return batch;
}

Result<RunBatch> ModelBook::MoveVersion(const std::string& name, int64_t version,
                                        const std::string& stage, bool archive, int64_t now_ms) {
  ATHANOR_TRY(auto* found, ChangeVersion(name, version));
  ATHANOR_TRY(auto* model, Change(name));
  RunBatch batch;
  for (auto& [number, other] : model->versions) {
    if (!archive || number == version || other.row.stage != stage) continue;
    other.row.stage = "Archived";
    other.row.updated_ms = now_ms;
    batch.versions.push_back(other.row);
  }
  found->row.stage = stage;
  found->row.updated_ms = model->row.updated_ms = now_ms;
  batch.versions.push_back(found->row);
  batch.models.push_back(model->row);
  return batch;
}

Result<RunBatch> ModelBook::RemoveVersion(const std::string& name, int64_t version,
                                          int64_t now_ms) {
  ATHANOR_CHECK_OK(ChangeVersion(name, version));
  ATHANOR_TRY(auto* model, Change(name));
  model->versions.erase(version);
  model->row.updated_ms = now_ms;
  model->last = std::max(model->last, version);
  RunBatch batch;
  batch.versions_gone.emplace_back(name, version);
  batch.labels.push_back({LabelKind::kModelNote, name, kLast, std::to_string(model->last)});
  batch.models.push_back(model->row);
  for (auto at = model->aliases.begin(); at != model->aliases.end();) {
    if (at->second != version) {
      ++at;
      continue;
    }
    batch.labels.push_back({LabelKind::kModelAlias, name, at->first, std::nullopt});
    at = model->aliases.erase(at);
  }
  return batch;
}

Result<RunBatch> ModelBook::TagVersion(const std::string& name, int64_t version,
                                       const std::string& key, std::optional<std::string> value) {
  ATHANOR_TRY(auto* found, ChangeVersion(name, version));
  return ChangeTag(found->tags, LabelKind::kVersionTag, VersionOwner(name, version), key,
                   std::move(value));
}

Result<LoggedModel*> ModelBook::ChangeLogged(const std::string& id) {
  const auto at = logged_.find(id);
  if (at != logged_.end() && !at->second.row.deleted) return &at->second;
  return Fail(ErrorCode::kNotFound,
              fmt::format("Logged model with ID '{}' not found.", Printable(id)));
}

Result<const LoggedModel*> ModelBook::FindLogged(const std::string& id, bool also_deleted) const {
  const auto at = logged_.find(id);
  if (at != logged_.end() && (also_deleted || !at->second.row.deleted)) return &at->second;
  return Fail(ErrorCode::kNotFound,
              fmt::format("Logged model with ID '{}' not found.", Printable(id)));
}

RunBatch ModelBook::AddLogged(LoggedModelRow row, const Tags& tags, const Tags& params) {
  RunBatch batch;
  batch.logged.push_back(row);
  AddTags(batch, LabelKind::kLoggedTag, row.id, tags);
  AddTags(batch, LabelKind::kLoggedParam, row.id, params);
  const std::string id = row.id;
  logged_[id] = {std::move(row), tags, params};
  return batch;
}

Result<RunBatch> ModelBook::SetLoggedStatus(const std::string& id, int64_t status, int64_t now_ms) {
  ATHANOR_TRY(auto* model, ChangeLogged(id));
  model->row.status = status;
  model->row.updated_ms = now_ms;
  RunBatch batch;
  batch.logged.push_back(model->row);
  return batch;
}

Result<RunBatch> ModelBook::RemoveLogged(const std::string& id, int64_t now_ms) {
  ATHANOR_TRY(auto* model, ChangeLogged(id));
  model->row.deleted = true;
  model->row.updated_ms = now_ms;
  RunBatch batch;
  batch.logged.push_back(model->row);
  return batch;
}

Result<RunBatch> ModelBook::TagLogged(const std::string& id, const Tags& tags, int64_t now_ms) {
  ATHANOR_TRY(auto* model, ChangeLogged(id));
  RunBatch batch;
  for (const auto& [key, value] : tags) model->tags[key] = value;
  AddTags(batch, LabelKind::kLoggedTag, id, tags);
  model->row.updated_ms = now_ms;
  batch.logged.push_back(model->row);
  return batch;
}

Result<RunBatch> ModelBook::UntagLogged(const std::string& id, const std::string& key,
                                        int64_t now_ms) {
  ATHANOR_TRY(auto* model, ChangeLogged(id));
  if (model->tags.erase(key) == 0) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("No tag with key {} in logged model {}", Printable(key), id));
  }
  RunBatch batch;
  batch.labels.push_back({LabelKind::kLoggedTag, id, key, std::nullopt});
  model->row.updated_ms = now_ms;
  batch.logged.push_back(model->row);
  return batch;
}

Result<RunBatch> ModelBook::ParamsOfLogged(const std::string& id, const Tags& params,
                                           int64_t now_ms) {
  ATHANOR_TRY(auto* model, ChangeLogged(id));
  RunBatch batch;
  for (const auto& [key, value] : params) model->params[key] = value;
  AddTags(batch, LabelKind::kLoggedParam, id, params);
  model->row.updated_ms = now_ms;
  batch.logged.push_back(model->row);
  return batch;
}

}  // namespace athanor
