#include "track/run_book.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/text.h"

namespace athanor {
namespace {

constexpr std::string_view kRunName = "mlflow.runName";

template <class Rows>
auto PlaceOf(Rows& rows, uint32_t key) {
  return std::lower_bound(rows.begin(), rows.end(), key,
                          [](const auto& row, uint32_t k) { return row.key < k; });
}

// True if that is news.
bool Put(std::vector<RunLabel>& labels, uint32_t key, const std::string& value) {
  const auto at = PlaceOf(labels, key);
  if (at != labels.end() && at->key == key) {
    if (at->value == value) return false;
    at->value = value;
    return true;
  }
  labels.insert(at, {key, value});
  return true;
}

tl::unexpected<Error> NoRun(JobId id) {
  return Fail(ErrorCode::kNotFound, fmt::format("Run with id={} not found", id.value.ToHex()),
              "ath runs");
}

RunStatus StatusOf(JobState state) {
  switch (state) {
    case JobState::kQueued:
    case JobState::kPlacing:
    case JobState::kPreparing:
    case JobState::kInterrupted: return RunStatus::kScheduled;
    case JobState::kRunning:
    case JobState::kUploading: return RunStatus::kRunning;
    case JobState::kCompleted: return RunStatus::kFinished;
    case JobState::kFailed: return RunStatus::kFailed;
    case JobState::kStopped: return RunStatus::kKilled;
  }
  return RunStatus::kRunning;
}

std::string ArtifactsOf(const ExperimentRow& experiment, JobId run) {
  return fmt::format("{}/{}/artifacts", experiment.location, run.value.ToHex());
}

WallTime StartOf(const JobRecord& record) {
  for (const auto& attempt : record.attempts) {
    if (attempt.started.ms != 0) return attempt.started;
  }
  return record.created;
}

}  // namespace

std::string_view NameOf(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning: return "RUNNING";
    case RunStatus::kScheduled: return "SCHEDULED";
    case RunStatus::kFinished: return "FINISHED";
    case RunStatus::kFailed: return "FAILED";
    case RunStatus::kKilled: return "KILLED";
  }
  return "RUNNING";
}

std::optional<RunStatus> RunStatusNamed(std::string_view name) {
  for (int value = 1; value <= 5; ++value) {
    const auto status = static_cast<RunStatus>(value);
    if (NameOf(status) == name) return status;
  }
  return std::nullopt;
}

const RunLabel* FindLabel(const std::vector<RunLabel>& labels, uint32_t key) {
  const auto at = PlaceOf(labels, key);
  return at != labels.end() && at->key == key ? &*at : nullptr;
}

void RunBook::Load(const RunBatch& all) {
  const std::unique_lock lock(mutex_);
  experiments_.clear();
  experiment_ids_.clear();
  table_.Clear();
  const Runs before = std::exchange(runs_, {});
  for (const auto& row : all.experiments) {
    experiments_[row.id].row = row;
    experiment_ids_[row.name] = row.id;
  }
  // The default experiment was made with the database, before anybody could say where.
  if (const auto at = experiments_.find(0);
      at != experiments_.end() && at->second.row.location == fmt::format("{}/0", kOwnArtifacts)) {
    at->second.row.location = fmt::format("{}/0", artifact_root_);
  }
  for (const auto& row : all.runs) {
    auto& entry = runs_[row.id];
    entry = std::make_unique<RunEntry>();
    entry->row = row;
    // Not kept with runs: their jobs know.
    if (const auto at = before.find(row.id); at != before.end()) {
      entry->resumes = at->second->resumes;
    }
    table_.Add(*entry);
  }
  for (const auto& label : all.labels) {
    if (!label.value) continue;
    if (label.kind == LabelKind::kExperimentTag) {
      const auto at = experiments_.find(std::strtoll(label.owner.c_str(), nullptr, 10));
      if (at != experiments_.end()) at->second.tags[label.key] = *label.value;
    }
    if (label.kind != LabelKind::kParam && label.kind != LabelKind::kTag) continue;
    const auto id = JobId::Parse(label.owner);
    const auto at = id ? runs_.find(*id) : runs_.end();
    if (at == runs_.end()) continue;
    auto& labels = label.kind == LabelKind::kParam ? at->second->params : at->second->tags;
    Put(labels, KeyOf(label.key), *label.value);
  }
  for (const auto& input : all.inputs) {
    if (const auto at = runs_.find(input.run); at != runs_.end()) {
      at->second->inputs.push_back(input);
    }
  }
  for (const auto& link : all.links) {
    if (const auto at = runs_.find(link.run); at != runs_.end()) at->second->links.push_back(link);
  }
}

// Needs the lock, as whatever adds a name does.
uint32_t RunBook::KeyOf(std::string_view name) const {
  if (const auto at = keys_.find(name); at != keys_.end()) return at->second;
  const auto key = static_cast<uint32_t>(names_.size());
  names_.emplace_back(name);
  keys_.emplace(names_.back(), key);
  return key;
}

std::optional<uint32_t> RunBook::KnownKey(std::string_view name) const {
  const auto at = keys_.find(name);
  if (at == keys_.end()) return std::nullopt;
  return at->second;
}

Result<RunEntry*> RunBook::Find(JobId id) {
  const auto at = runs_.find(id);
  if (at == runs_.end()) return NoRun(id);
  return at->second.get();
}

Result<RunEntry*> RunBook::Active(JobId id) {
  ATHANOR_TRY(auto* run, Find(id));
  if (run->row.deleted) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("The run {} must be in the 'active' state. Current state is deleted.",
                            id.value.ToHex()));
  }
  return run;
}

Result<Experiment*> RunBook::FindExperimentLocked(int64_t id) {
  const auto at = experiments_.find(id);
  if (at == experiments_.end()) {
    return Fail(ErrorCode::kNotFound, fmt::format("No Experiment with id={} exists", id));
  }
  return &at->second;
}

Result<Experiment> RunBook::FindExperiment(int64_t id) const {
  const std::shared_lock lock(mutex_);
  ATHANOR_TRY(const auto* found, const_cast<RunBook*>(this)->FindExperimentLocked(id));
  return *found;
}

Result<Experiment> RunBook::ExperimentNamed(std::string_view name) const {
  const std::shared_lock lock(mutex_);
  const auto at = experiment_ids_.find(name);
  if (at == experiment_ids_.end()) {
    return Fail(ErrorCode::kNotFound, fmt::format("Could not find experiment with name '{}'",
                                                  Printable(name.substr(0, 500))));
  }
  return experiments_.at(at->second);
}

std::vector<Experiment> RunBook::Experiments() const {
  const std::shared_lock lock(mutex_);
  std::vector<Experiment> all;
  for (const auto& [id, experiment] : experiments_) all.push_back(experiment);
  return all;
}

Result<RunBatch> RunBook::AddExperiment(std::string name, std::string location, const Pairs& tags,
                                        int64_t now_ms, int64_t& id) {
  const std::unique_lock lock(mutex_);
  if (const auto at = experiment_ids_.find(name); at != experiment_ids_.end()) {
    const bool deleted = experiments_.at(at->second).row.deleted;
    return Fail(ErrorCode::kConflict,
                fmt::format("Experiment '{}' already exists{}", Printable(name),
                            deleted ? " in deleted state. You can restore the experiment, or "
                                      "permanently delete it to create a new one."
                                    : "."));
  }
  RunBatch batch;
  id = ExperimentFor(name, now_ms, batch);
  Experiment& experiment = experiments_.at(id);
  if (!location.empty()) {
    batch.experiments.back().location = experiment.row.location = std::move(location);
  }
  for (const auto& [key, value] : tags) {
    experiment.tags[key] = value;
    batch.labels.push_back({LabelKind::kExperimentTag, std::to_string(id), key, value});
  }
  return batch;
}

// The experiment of that name, made if it is not there.
int64_t RunBook::ExperimentFor(const std::string& name, int64_t now_ms, RunBatch& batch) {
  if (name.empty()) return 0;
  if (const auto at = experiment_ids_.find(name); at != experiment_ids_.end()) return at->second;
  ExperimentRow row;
  row.id = experiments_.empty() ? 1 : experiments_.rbegin()->first + 1;
  row.name = name;
  row.location = fmt::format("{}/{}", artifact_root_, row.id);
  row.created_ms = row.updated_ms = now_ms;
  experiments_[row.id].row = row;
  experiment_ids_[name] = row.id;
  batch.experiments.push_back(row);
  return row.id;
}

Result<RunBatch> RunBook::RenameExperiment(int64_t id, std::string name, int64_t now_ms) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* experiment, FindExperimentLocked(id));
  if (experiment->row.deleted) {
    return Fail(ErrorCode::kInvalid, "Cannot rename a non-active experiment.");
  }
  if (const auto at = experiment_ids_.find(name); at != experiment_ids_.end() && at->second != id) {
    return Fail(ErrorCode::kConflict,
                fmt::format("Experiment '{}' already exists.", Printable(name)));
  }
  experiment_ids_.erase(experiment->row.name);
  experiment_ids_[name] = id;
  experiment->row.name = std::move(name);
  experiment->row.updated_ms = now_ms;
  RunBatch batch;
  batch.experiments.push_back(experiment->row);
  return batch;
}

Result<RunBatch> RunBook::SetExperimentDeleted(int64_t id, bool deleted, int64_t now_ms) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* experiment, FindExperimentLocked(id));
  if (deleted && experiment->row.deleted) {
    return Fail(ErrorCode::kNotFound, fmt::format("No Experiment with id={} exists", id));
  }
  RunBatch batch;
  experiment->row.deleted = deleted;
  experiment->row.updated_ms = now_ms;
  batch.experiments.push_back(experiment->row);
  for (auto& [run_id, run] : runs_) {
    if (run->row.experiment != id || run->row.deleted == deleted) continue;
    run->row.deleted = deleted;
    run->row.deleted_ms = deleted ? now_ms : 0;
    table_.Update(*run);
    batch.runs.push_back(run->row);
  }
  return batch;
}

Result<RunBatch> RunBook::TagExperiment(int64_t id, const std::string& key,
                                        std::optional<std::string> value, int64_t now_ms) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* experiment, FindExperimentLocked(id));
  if (experiment->row.deleted) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("The experiment {} must be in the 'active' state. Current state is "
                            "deleted.", id));
  }
  if (value) {
    experiment->tags[key] = *value;
  } else if (experiment->tags.erase(key) == 0) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("No tag with name: {} in experiment with id {}", Printable(key), id));
  }
  experiment->row.updated_ms = now_ms;
  RunBatch batch;
  batch.experiments.push_back(experiment->row);
  batch.labels.push_back({LabelKind::kExperimentTag, std::to_string(id), key, std::move(value)});
  return batch;
}

void RunBook::SetTag(RunEntry& run, const std::string& key, const std::string& value,
                     RunBatch& batch) {
  if (key == kRunName && run.row.name != value) {
    run.row.name = value;
    batch.runs.push_back(run.row);
  }
  if (!Put(run.tags, KeyOf(key), value)) return;
  batch.labels.push_back({LabelKind::kTag, run.row.id.value.ToHex(), key, value});
}

void RunBook::SetParam(RunEntry& run, const std::string& key, const std::string& value,
                       RunBatch& batch) {
  if (!Put(run.params, KeyOf(key), value)) return;
  batch.labels.push_back({LabelKind::kParam, run.row.id.value.ToHex(), key, value});
}

Result<RunBatch> RunBook::AddRun(const NewRun& made) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(const auto* experiment, FindExperimentLocked(made.experiment));
  if (experiment->row.deleted) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("The experiment {} must be in the 'active' state. Current state is "
                            "deleted.", made.experiment));
  }
  auto& run = runs_[made.id];
  run = std::make_unique<RunEntry>();
  run->row.id = made.id;
  run->row.experiment = made.experiment;
  run->row.name = made.name;
  run->row.user = made.user;
  run->row.started_ms = made.started_ms;
  run->row.artifacts = ArtifactsOf(experiment->row, made.id);
  run->stale = false;
  table_.Add(*run);
  RunBatch batch;
  batch.runs.push_back(run->row);
  for (const auto& [key, value] : made.tags) SetTag(*run, key, value, batch);
  SetTag(*run, std::string(kRunName), made.name, batch);
  return batch;
}

Result<RunBatch> RunBook::UpdateRun(JobId id, const RunUpdate& update) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  RunBatch batch;
  // How a job stands is for its record to say, not for the script inside it.
  if (!run->row.is_job) {
    if (update.status) run->row.status = *update.status;
    if (update.ended_ms) run->row.ended_ms = *update.ended_ms;
  }
  batch.runs.push_back(run->row);
  if (update.name) SetTag(*run, std::string(kRunName), *update.name, batch);
  return batch;
}

Result<RunBatch> RunBook::SetRunDeleted(JobId id, bool deleted, int64_t now_ms) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Find(id));
  run->row.deleted = deleted;
  run->row.deleted_ms = deleted ? now_ms : 0;
  table_.Update(*run);
  RunBatch batch;
  batch.runs.push_back(run->row);
  return batch;
}

Result<RunBatch> RunBook::LogParams(JobId id, const Pairs& params) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  std::map<std::string_view, std::string_view> fresh;
  for (const auto& [key, value] : params) {
    const auto known = KnownKey(key);
    const RunLabel* before = known ? FindLabel(run->params, *known) : nullptr;
    const auto [at, first] = fresh.emplace(key, value);
    const std::string_view old = before ? std::string_view(before->value) : at->second;
    if (old == value) continue;
    return Fail(ErrorCode::kInvalid,
                fmt::format("Changing param values is not allowed. Param with key='{}' was already "
                            "logged with value='{}' for run ID='{}'. Attempted logging new value "
                            "'{}'.", key, old, id.value.ToHex(), value));
  }
  RunBatch batch;
  for (const auto& [key, value] : params) SetParam(*run, key, value, batch);
  return batch;
}

Result<RunBatch> RunBook::SetTags(JobId id, const Pairs& tags) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  RunBatch batch;
  for (const auto& [key, value] : tags) SetTag(*run, key, value, batch);
  return batch;
}

Result<RunBatch> RunBook::DeleteTag(JobId id, const std::string& key) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  const auto known = KnownKey(key);
  const auto at = known ? PlaceOf(run->tags, *known) : run->tags.end();
  if (at == run->tags.end() || at->key != *known) {
    return Fail(ErrorCode::kNotFound, fmt::format("No tag with name: {} in run with id {}",
                                                  Printable(key), id.value.ToHex()));
  }
  run->tags.erase(at);
  RunBatch batch;
  batch.labels.push_back({LabelKind::kTag, id.value.ToHex(), key, std::nullopt});
  return batch;
}

Result<RunBatch> RunBook::AddInputs(JobId id, std::vector<DatasetRow> datasets,
                                    std::vector<InputRow> inputs,
                                    std::vector<ModelLinkRow> links) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  for (auto& dataset : datasets) dataset.experiment = run->row.experiment;
  for (auto& input : inputs) {
    input.run = id;
    const auto same = std::find_if(run->inputs.begin(), run->inputs.end(), [&](const auto& known) {
      return known.name == input.name && known.digest == input.digest;
    });
    if (same == run->inputs.end()) {
      run->inputs.push_back(input);
    } else {
      *same = input;
    }
  }
  for (auto& link : links) {
    link.run = id;
    const auto same = std::find_if(run->links.begin(), run->links.end(), [&](const auto& known) {
      return known.model == link.model && known.output == link.output;
    });
    if (same == run->links.end()) {
      run->links.push_back(link);
    } else {
      *same = link;
    }
  }
  RunBatch batch;
  batch.datasets = std::move(datasets);
  batch.inputs = std::move(inputs);
  batch.links = std::move(links);
  return batch;
}

Result<RunBatch> RunBook::MoveRun(JobId id, int64_t experiment) {
  const std::unique_lock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  ATHANOR_TRY(const auto* to, FindExperimentLocked(experiment));
  RunBatch batch;
  // Its artifacts stay where they are: the URI goes with the run.
  if (run->row.experiment == to->row.id) return batch;
  run->row.experiment = to->row.id;
  table_.Update(*run);
  batch.runs.push_back(run->row);
  return batch;
}

RunBatch RunBook::Mirror(const JobRecord& record) {
  const std::unique_lock lock(mutex_);
  RunBatch batch;
  auto& run = runs_[record.id];
  const bool fresh = !run;
  if (fresh) {
    run = std::make_unique<RunEntry>();
    run->row.id = record.id;
    run->row.is_job = true;
    run->row.experiment = ExperimentFor(record.spec.experiment, record.created.ms, batch);
    run->row.artifacts = ArtifactsOf(experiments_.at(run->row.experiment).row, record.id);
    run->row.name = record.spec.run.empty() ? record.spec.name : record.spec.run;
    run->row.user = record.user;
    table_.Add(*run);
  }
  const auto times = [&row = run->row] {
    return std::tuple(row.status, row.started_ms, row.ended_ms);
  };
  const auto before = times();
  run->row.status = StatusOf(record.state);
  run->row.started_ms = StartOf(record).ms;
  run->row.ended_ms = record.ended.ms;
  if (fresh || times() != before) batch.runs.push_back(run->row);
  Resumes resumes;
  for (const auto& attempt : record.attempts) {
    if (attempt.resumed_step) resumes[attempt.number] = *attempt.resumed_step;
  }
  if (run->resumes != resumes) {
    run->resumes = std::move(resumes);
    run->stale = true;
  }
  table_.Update(*run);
  if (!fresh) return batch;
  run->params.reserve(record.spec.params.size());
  for (const auto& param : record.spec.params) SetParam(*run, param.name, param.value, batch);
  const Pairs tags = {{std::string(kRunName), run->row.name},
                      {"mlflow.user", record.user},
                      {"mlflow.source.type", "JOB"},
                      {"mlflow.source.name", record.spec.entry},
                      {"mlflow.source.git.commit", record.spec.source.git_commit},
                      {"athanor.job", record.spec.name}};
  const auto said = std::ranges::count_if(tags, [](const auto& tag) { return !tag.second.empty(); });
  run->tags.reserve(record.spec.tags.size() + static_cast<size_t>(said));
  for (const auto& [key, value] : record.spec.tags) SetTag(*run, key, value, batch);
  for (const auto& [key, value] : tags) {
    if (!value.empty()) SetTag(*run, key, value, batch);
  }
  return batch;
}

RunBatch RunBook::RowsOf(JobId id, bool whole) const {
  const std::shared_lock lock(mutex_);
  RunBatch batch;
  const auto at = runs_.find(id);
  if (at == runs_.end()) return batch;
  const RunEntry& run = *at->second;
  batch.runs.push_back(run.row);
  if (!whole) return batch;
  const std::string owner = id.value.ToHex();
  for (const auto& param : run.params) {
    batch.labels.push_back({LabelKind::kParam, owner, names_[param.key], param.value});
  }
  for (const auto& tag : run.tags) {
    batch.labels.push_back({LabelKind::kTag, owner, names_[tag.key], tag.value});
  }
  return batch;
}

RunBatch RunBook::Remove(JobId id) {
  const std::unique_lock lock(mutex_);
  RunBatch batch;
  const auto at = runs_.find(id);
  if (at == runs_.end()) return batch;
  table_.Remove(*at->second);
  runs_.erase(at);
  batch.runs_gone.push_back(id);
  return batch;
}

Status RunBook::CheckActive(JobId id) const {
  const std::shared_lock lock(mutex_);
  ATHANOR_CHECK_OK(const_cast<RunBook*>(this)->Active(id));
  return Ok();
}

bool RunBook::Has(JobId id) const {
  const std::shared_lock lock(mutex_);
  return runs_.contains(id);
}

void RunBook::Touch(JobId id) {
  const std::unique_lock lock(mutex_);
  const auto at = runs_.find(id);
  if (at == runs_.end() || at->second->stale) return;
  at->second->stale = true;
  table_.Update(*at->second);
}

Resumes RunBook::ResumesOf(JobId id) const {
  const std::shared_lock lock(mutex_);
  const auto at = runs_.find(id);
  return at == runs_.end() ? Resumes{} : at->second->resumes;
}

std::optional<std::string> RunBook::TagOf(JobId id, std::string_view key) const {
  const std::shared_lock lock(mutex_);
  const auto at = runs_.find(id);
  const auto known = KnownKey(key);
  if (at == runs_.end() || !known) return std::nullopt;
  const RunLabel* label = FindLabel(at->second->tags, *known);
  if (label == nullptr) return std::nullopt;
  return label->value;
}

}  // namespace athanor
