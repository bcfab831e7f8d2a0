// ModelBook has what is known about models, in memory: registered ones with their versions, tags
// and aliases, and the models that runs logged. As in RunBook, a change is made here at once and
// returned as the batch that makes it durable.
//
// Threads: the one that changes it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/runs/run_rows.h"

namespace athanor {

using Tags = std::map<std::string, std::string>;

struct ModelVersion {
  VersionRow row;
  Tags tags;
  std::string location = {};  // of its files, if `row.source` names another model or version

  const std::string& place() const { return location.empty() ? row.source : location; }
};

struct RegisteredModel {
  ModelRow row;
  Tags tags;
  std::map<std::string, int64_t> aliases;
  std::map<int64_t, ModelVersion> versions;
  int64_t last = 0;  // the highest number ever used, including removed versions
};

struct LoggedModel {
  LoggedModelRow row;
  Tags tags;
  Tags params;
};

class ModelBook {
 public:
  void Load(const RunBatch& all);

  // kNotFound: there is no such model or version. kInvalid: no such alias. kConflict: the name is
  // taken.
  Result<const RegisteredModel*> Find(const std::string& name) const;
  Result<const ModelVersion*> FindVersion(const std::string& name, int64_t version) const;
  // The version of an alias; "latest" is the newest.
  Result<const ModelVersion*> FindAlias(const std::string& name, const std::string& alias) const;
  const std::map<std::string, RegisteredModel>& models() const { return models_; }

  Result<RunBatch> Add(const std::string& name, std::string description, const Tags& tags,
                       int64_t now_ms);
  Result<RunBatch> Rename(const std::string& name, const std::string& to, int64_t now_ms);
  Result<RunBatch> Describe(const std::string& name, std::string description, int64_t now_ms);
  Result<RunBatch> Remove(const std::string& name);
  // No value: it is removed.
  Result<RunBatch> Tag(const std::string& name, const std::string& key,
                       std::optional<std::string> value);
  Result<RunBatch> SetAlias(const std::string& name, const std::string& alias, int64_t version);
  Result<RunBatch> RemoveAlias(const std::string& name, const std::string& alias);

  // Its number is the next of the model, never one that was used before; `made` is set to it. A
  // source that names a logged model (models:/m-...) or another version (models:/NAME/2,
  // models:/NAME@alias) is followed: the version stores where the files are, and the run that made
  // them unless it names one. kNotFound: there is no such model.
  Result<RunBatch> AddVersion(VersionRow version, const Tags& tags, int64_t now_ms, int64_t& made);
  Result<RunBatch> DescribeVersion(const std::string& name, int64_t version,
                                   std::string description, int64_t now_ms);
  // `archive`: others in that stage go to Archived.
  Result<RunBatch> MoveVersion(const std::string& name, int64_t version, const std::string& stage,
                               bool archive, int64_t now_ms);
  Result<RunBatch> RemoveVersion(const std::string& name, int64_t version, int64_t now_ms);
  Result<RunBatch> TagVersion(const std::string& name, int64_t version, const std::string& key,
                              std::optional<std::string> value);

  // Models that runs logged. kNotFound: there is no such model, or tag.
  Result<const LoggedModel*> FindLogged(const std::string& id, bool also_deleted = false) const;
  const std::map<std::string, LoggedModel>& logged() const { return logged_; }
  RunBatch AddLogged(LoggedModelRow row, const Tags& tags, const Tags& params);
  Result<RunBatch> SetLoggedStatus(const std::string& id, int64_t status, int64_t now_ms);
  Result<RunBatch> RemoveLogged(const std::string& id, int64_t now_ms);
  Result<RunBatch> TagLogged(const std::string& id, const Tags& tags, int64_t now_ms);
  Result<RunBatch> UntagLogged(const std::string& id, const std::string& key, int64_t now_ms);
  Result<RunBatch> ParamsOfLogged(const std::string& id, const Tags& params, int64_t now_ms);

 private:
  Result<RegisteredModel*> Change(const std::string& name);
  Result<ModelVersion*> ChangeVersion(const std::string& name, int64_t version);
  Result<LoggedModel*> ChangeLogged(const std::string& id);
  Result<std::string> Follow(VersionRow& version) const;

  std::map<std::string, RegisteredModel> models_;
  std::map<std::string, LoggedModel> logged_;
};

}  // namespace athanor
