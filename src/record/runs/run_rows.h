// The nouns of tracking, as they are stored: experiments, runs, their keys and values, and models.
// A run that is a training job has the job's id. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/ids.h"

namespace athanor {

struct ExperimentRow {
  int64_t id = 0;        // 0 is "Default", which always exists
  std::string name;      // unique, also among deleted ones
  std::string location;  // of its runs' artifacts
  bool deleted = false;
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
};

enum class RunStatus : uint8_t { kRunning = 1, kScheduled, kFinished, kFailed, kKilled };

struct RunRow {
  JobId id;
  int64_t experiment = 0;
  std::string name;
  std::string user;
  RunStatus status = RunStatus::kRunning;
  int64_t started_ms = 0;
  int64_t ended_ms = 0;  // 0: not yet
  bool deleted = false;
  int64_t deleted_ms = 0;
  bool is_job = false;
  std::string artifacts;  // URI
};

// A key and a value of an owner.
enum class LabelKind : uint8_t {
  kExperimentTag = 1,  // owner: the experiment's number
  kParam,              // of a run, by its id in hex
  kTag,
  kModelTag,    // owner: the model's name
  kModelAlias,  // value: the version
  kVersionTag,  // owner: VersionOwner
  kLoggedTag,   // owner: the logged model's id
  kLoggedParam,
  kModelNote,    // internal, not shown; owner: the model's name
  kVersionNote,  // internal, not shown; owner: VersionOwner
};

struct Label {
  LabelKind kind = LabelKind::kTag;
  std::string owner;
  std::string key;
  std::optional<std::string> value;  // none: it is removed
};

// A data set that a run used; several runs may name the same one.
struct DatasetRow {
  int64_t experiment = 0;
  std::string name;
  std::string digest;
  std::string source_type;
  std::string source;
  std::string schema;
  std::string profile;
};

struct InputRow {
  JobId run;
  std::string name;  // with `digest`: the data set, of the run's experiment
  std::string digest;
  std::string tags;  // JSON: [{"key":...,"value":...}]
};

// A logged model that a run used or produced.
struct ModelLinkRow {
  JobId run;
  std::string model;
  bool output = false;
  int64_t step = 0;
};

struct ModelRow {
  std::string name;
  std::string description;
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
};

struct VersionRow {
  std::string name;
  int64_t version = 0;
  std::string stage = "None";
  std::string description;
  std::string source;
  std::string run_id;
  std::string run_link;
  std::string model_id;
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
};

// A model has a name without '/', so this names one version only.
inline std::string VersionOwner(const std::string& name, int64_t version) {
  return name + "/" + std::to_string(version);
}

struct LoggedModelRow {
  std::string id;  // "m-" and 32 hex digits
  int64_t experiment = 0;
  std::string name;
  std::string type;
  std::string run_id;  // that made it; may be empty
  std::string artifacts;
  int64_t status = 1;  // 1 pending, 2 ready, 3 failed
  bool deleted = false;
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
};

// Changes that belong together: all are stored or none. In each list, the last entry for one owner
// (and key) counts.
struct RunBatch {
  std::vector<ExperimentRow> experiments;
  std::vector<RunRow> runs;
  std::vector<Label> labels;
  std::vector<DatasetRow> datasets;  // one that exists stays as it is
  std::vector<InputRow> inputs;
  std::vector<ModelLinkRow> links;
  std::vector<ModelRow> models;
  std::vector<VersionRow> versions;
  std::vector<LoggedModelRow> logged;
  // Removed with all their keys and values.
  std::vector<JobId> runs_gone;
  std::vector<std::string> models_gone;
  std::vector<std::pair<std::string, int64_t>> versions_gone;

  bool empty() const {
    return experiments.empty() && runs.empty() && labels.empty() && datasets.empty() &&
           inputs.empty() && links.empty() && models.empty() && versions.empty() &&
           logged.empty() && runs_gone.empty() && models_gone.empty() && versions_gone.empty();
  }
};

}  // namespace athanor
