#include "track/run_book.h"

#include <algorithm>
#include <tuple>

#include "base/exec/shared_mutex.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "job/shown.h"

namespace athanor {
namespace {

constexpr std::string_view kRunName = "mlflow.runName";
constexpr size_t kSweptAtOnce = 2'000;
constexpr size_t kMostAlike = 10;  // runs whose ids have the same digits, to be counted

tl::unexpected<Error> NoRun(JobId id) {
  return Fail(ErrorCode::kNotFound, fmt::format("Run with id={} not found", id.value.ToHex()),
              "ath runs");
}

RunStatus RunStatusOf(JobState state) {
  switch (state) {
    case JobState::kQueued:
    case JobState::kPlacing:
    case JobState::kPreparing:
    case JobState::kInterrupted:
      return RunStatus::kScheduled;
    case JobState::kRunning:
    case JobState::kUploading:
      return RunStatus::kRunning;
    case JobState::kCompleted:
      return RunStatus::kFinished;
    case JobState::kFailed:
      return RunStatus::kFailed;
    case JobState::kStopped:
      return RunStatus::kKilled;
  }
  return RunStatus::kRunning;
}

std::string UsualArtifacts(const ExperimentRow& experiment, JobId run) {
  return fmt::format("{}/{}/artifacts", experiment.location, run.value.ToHex());
}

// Every run of MLflow has a start; that of a job whose script has not run is when it was submitted.
WallTime StartOf(const JobRecord& record) {
  const WallTime started = FirstStarted(record);
  return started.ms != 0 ? started : record.created;
}

}  // namespace

std::string_view NameOf(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "RUNNING";
    case RunStatus::kScheduled:
      return "SCHEDULED";
    case RunStatus::kFinished:
      return "FINISHED";
    case RunStatus::kFailed:
      return "FAILED";
    case RunStatus::kKilled:
      return "KILLED";
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

// Needs the write lock, because it may add a name.
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
  return &at->second;
}

Result<RunEntry*> RunBook::Active(JobId id) {
  ATHANOR_TRY(auto* run, Find(id));
  if (run->deleted) {
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
  const ReadLock lock(mutex_);
  ATHANOR_TRY(const auto* found, const_cast<RunBook*>(this)->FindExperimentLocked(id));
  return *found;
}

Result<Experiment> RunBook::ExperimentNamed(std::string_view name) const {
  const ReadLock lock(mutex_);
  const auto at = experiment_ids_.find(name);
  if (at == experiment_ids_.end()) {
    return Fail(ErrorCode::kNotFound, fmt::format("Could not find experiment with name '{}'",
                                                  Printable(name.substr(0, 500))));
  }
  return experiments_.at(at->second);
}

std::vector<Experiment> RunBook::Experiments() const {
  const ReadLock lock(mutex_);
  std::vector<Experiment> all;
  for (const auto& [id, experiment] : experiments_) all.push_back(experiment);
  return all;
}

Result<RunBatch> RunBook::AddExperiment(std::string name, std::string location, const Pairs& tags,
                                        int64_t now_ms, int64_t& id) {
  const WriteLock lock(mutex_);
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
  const WriteLock lock(mutex_);
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
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* experiment, FindExperimentLocked(id));
  if (deleted && experiment->row.deleted) {
    return Fail(ErrorCode::kNotFound, fmt::format("No Experiment with id={} exists", id));
  }
  RunBatch batch;
  experiment->row.deleted = deleted;
  experiment->row.updated_ms = now_ms;
  batch.experiments.push_back(experiment->row);
  return batch;
}

RunBatch RunBook::SweepRuns(int64_t experiment, bool deleted, int64_t now_ms, RunSweep& sweep) {
  const WriteLock lock(mutex_);
  // The removal may have moved a run into a position that was passed already.
  if (sweep.moves != table_.moves()) sweep = {0, table_.moves(), false};
  RunBatch batch;
  const auto experiments = table_.experiments();
  for (; sweep.place < table_.size() && batch.runs.size() < kSweptAtOnce; ++sweep.place) {
    if (experiments[sweep.place] != experiment) continue;
    RunEntry& run = table_.run(sweep.place);
    if (run.deleted == deleted) continue;
    SetDeleted(run, deleted, now_ms);
    batch.runs.push_back(RowOf(run));
  }
  sweep.done = sweep.place >= table_.size();
  return batch;
}

Result<RunBatch> RunBook::TagExperiment(int64_t id, const std::string& key,
                                        std::optional<std::string> value, int64_t now_ms) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* experiment, FindExperimentLocked(id));
  if (experiment->row.deleted) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("The experiment {} must be in the 'active' state. Current state is "
                            "deleted.",
                            id));
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

void RunBook::SetDeleted(RunEntry& run, bool deleted, int64_t now_ms) {
  counts_.Take(run);
  run.deleted = deleted;
  if (deleted || run.extra) run.AddMore().deleted_ms = deleted ? now_ms : 0;
  counts_.Add(run);
  table_.Update(run);
}

void RunBook::SetTag(RunEntry& run, const std::string& key, const std::string& value,
                     RunBatch& batch) {
  if (key == kRunName && run.name != value) {
    index_.Rename(run, value);
    batch.runs.push_back(RowOf(run));
  }
  const uint32_t number = KeyOf(key);
  const auto was = run.tags.Put(number, value);
  if (was == RunLabels::Was::kSame) return;
  if (was == RunLabels::Was::kNew) counts_.AddKey(run, KeyKind::kTag, number);
  batch.labels.push_back({LabelKind::kTag, run.id.value.ToHex(), key, value});
}

void RunBook::SetParam(RunEntry& run, const std::string& key, const std::string& value,
                       RunBatch& batch) {
  const uint32_t number = KeyOf(key);
  const auto was = run.params.Put(number, value);
  if (was == RunLabels::Was::kSame) return;
  if (was == RunLabels::Was::kNew) counts_.AddKey(run, KeyKind::kParam, number);
  batch.labels.push_back({LabelKind::kParam, run.id.value.ToHex(), key, value});
}

Result<RunBatch> RunBook::AddRun(const NewRun& made) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(const auto* experiment, FindExperimentLocked(made.experiment));
  if (experiment->row.deleted) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("The experiment {} must be in the 'active' state. Current state is "
                            "deleted.",
                            made.experiment));
  }
  RunEntry& run = runs_[made.id];
  run.id = made.id;
  run.experiment = made.experiment;
  run.name = made.name;
  run.user = KeyOf(made.user);
  run.started_ms = made.started_ms;
  Insert(run);
  RunBatch batch;
  batch.runs.push_back(RowOf(run));
  for (const auto& [key, value] : made.tags) SetTag(run, key, value, batch);
  SetTag(run, std::string(kRunName), made.name, batch);
  return batch;
}

Result<RunBatch> RunBook::UpdateRun(JobId id, const RunUpdate& update) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  RunBatch batch;
  // The job's record decides the status of a job, not the script inside it.
  if (!run->is_job) {
    if (update.status) run->status = *update.status;
    if (update.ended_ms) run->ended_ms = *update.ended_ms;
    counts_.Happened(*run);
  }
  batch.runs.push_back(RowOf(*run));
  if (update.name) SetTag(*run, std::string(kRunName), *update.name, batch);
  return batch;
}

Result<RunBatch> RunBook::SetRunDeleted(JobId id, bool deleted, int64_t now_ms) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Find(id));
  SetDeleted(*run, deleted, now_ms);
  RunBatch batch;
  batch.runs.push_back(RowOf(*run));
  return batch;
}

Result<RunBatch> RunBook::LogParams(JobId id, const Pairs& params) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  std::map<std::string_view, std::string_view> fresh;
  for (const auto& [key, value] : params) {
    // All are checked before any is set, also against each other: a call changes all or nothing.
    const auto known = KnownKey(key);
    const auto before = known ? run->params.Find(*known) : std::nullopt;
    const auto [at, first] = fresh.emplace(key, value);
    const std::string_view old = before.value_or(at->second);
    if (old == value) continue;
    return Fail(ErrorCode::kInvalid,
                fmt::format("Changing param values is not allowed. Param with key='{}' was already "
                            "logged with value='{}' for run ID='{}'. Attempted logging new value "
                            "'{}'.",
                            key, old, id.value.ToHex(), value));
  }
  RunBatch batch;
  for (const auto& [key, value] : params) SetParam(*run, key, value, batch);
  return batch;
}

Result<RunBatch> RunBook::SetTags(JobId id, const Pairs& tags) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  RunBatch batch;
  for (const auto& [key, value] : tags) SetTag(*run, key, value, batch);
  return batch;
}

Result<RunBatch> RunBook::DeleteTag(JobId id, const std::string& key) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  const auto known = KnownKey(key);
  if (!known || !run->tags.Erase(*known)) {
    return Fail(ErrorCode::kNotFound, fmt::format("No tag with name: {} in run with id {}",
                                                  Printable(key), id.value.ToHex()));
  }
  counts_.TakeKey(*run, KeyKind::kTag, *known);
  RunBatch batch;
  batch.labels.push_back({LabelKind::kTag, id.value.ToHex(), key, std::nullopt});
  return batch;
}

Result<RunBatch> RunBook::AddInputs(JobId id, std::vector<DatasetRow> datasets,
                                    std::vector<InputRow> inputs, std::vector<ModelLinkRow> links) {
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  for (auto& dataset : datasets) dataset.experiment = run->experiment;
  auto& more = run->AddMore();
  for (auto& input : inputs) {
    input.run = id;
    const auto same = std::find_if(more.inputs.begin(), more.inputs.end(), [&](const auto& known) {
      return known.name == input.name && known.digest == input.digest;
    });
    if (same == more.inputs.end()) {
      more.inputs.push_back(input);
    } else {
      *same = input;
    }
  }
  for (auto& link : links) {
    link.run = id;
    const auto same = std::find_if(more.links.begin(), more.links.end(), [&](const auto& known) {
      return known.model == link.model && known.output == link.output;
    });
    if (same == more.links.end()) {
      more.links.push_back(link);
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
  const WriteLock lock(mutex_);
  ATHANOR_TRY(auto* run, Active(id));
  ATHANOR_TRY(const auto* to, FindExperimentLocked(experiment));
  RunBatch batch;
  // Its artifacts stay where they are: the URI goes with the run.
  if (run->experiment == to->row.id) return batch;
  run->AddMore().artifacts = ArtifactsOf(*run);
  counts_.Take(*run);
  run->experiment = to->row.id;
  counts_.Add(*run);
  table_.Update(*run);
  batch.runs.push_back(RowOf(*run));
  return batch;
}

RunBatch RunBook::Mirror(const JobRecord& record) {
  const WriteLock lock(mutex_);
  RunBatch batch;
  const auto [at, fresh] = runs_.try_emplace(record.id);
  RunEntry& run = at->second;
  const auto times = [&run] { return std::tuple(run.status, run.started_ms, run.ended_ms); };
  const auto before = times();
  run.status = RunStatusOf(record.state);
  run.started_ms = StartOf(record).ms;
  run.ended_ms = record.ended.ms;
  if (fresh) {
    run.id = record.id;
    run.is_job = true;
    run.experiment = ExperimentFor(record.spec.experiment, record.created.ms, batch);
    run.name = record.spec.run.empty() ? record.spec.name : record.spec.run;
    run.user = KeyOf(record.user);
    run.touched = record.attempts.empty() ? 0 : 1;  // it may have points of before there were runs
    Insert(run);
  }
  if (fresh || times() != before) {
    batch.runs.push_back(RowOf(run));
    counts_.Happened(run);
  }
  Resumes resumes;
  for (const auto& attempt : record.attempts) {
    if (attempt.resumed_step) resumes[attempt.number] = *attempt.resumed_step;
  }
  if (run.more().resumes != resumes) {
    run.AddMore().resumes = std::move(resumes);
    Changed(run);
  }
  table_.Update(run);
  if (!fresh) return batch;
  for (const auto& param : record.spec.params) SetParam(run, param.name, param.value, batch);
  const Pairs tags = {{std::string(kRunName), run.name},
                      {"mlflow.user", record.user},
                      {"mlflow.source.type", "JOB"},
                      {"mlflow.source.name", record.spec.entry},
                      {"mlflow.source.git.commit", record.spec.source.git_commit},
                      {"athanor.job", record.spec.name}};
  for (const auto& [key, value] : record.spec.tags) SetTag(run, key, value, batch);
  for (const auto& [key, value] : tags) {
    if (!value.empty()) SetTag(run, key, value, batch);
  }
  run.params.Fit();
  run.tags.Fit();
  return batch;
}

bool RunBook::IsInLine(JobId id, JobState state, size_t attempts) const {
  const ReadLock lock(mutex_);
  const auto at = runs_.find(id);
  if (at == runs_.end() || at->second.status != RunStatusOf(state)) return false;
  // With several attempts, the steps they resumed from may be new; a job that is not over may have
  // got its start time since.
  return attempts == 0 || (IsTerminal(state) && attempts < 2);
}

RunBatch RunBook::RowsOf(JobId id, bool whole) const {
  const ReadLock lock(mutex_);
  RunBatch batch;
  const auto at = runs_.find(id);
  if (at == runs_.end()) return batch;
  const RunEntry& run = at->second;
  batch.runs.push_back(RowOf(run));
  if (!whole) return batch;
  const std::string owner = id.value.ToHex();
  const auto add = [&](LabelKind kind, const RunLabels& labels) {
    for (const auto label : labels) {
      batch.labels.push_back({kind, owner, KeyName(label.key), std::string(label.value)});
    }
  };
  add(LabelKind::kParam, run.params);
  add(LabelKind::kTag, run.tags);
  return batch;
}

RunBatch RunBook::Remove(JobId id) {
  const WriteLock lock(mutex_);
  RunBatch batch;
  const auto at = runs_.find(id);
  if (at == runs_.end()) return batch;
  // If the id is used again, no old metrics may appear.
  if (at->second.kept) kept_->Touched(id);
  counts_.Take(at->second);
  index_.Remove(at->second);
  table_.Remove(at->second);
  runs_.erase(at);
  batch.runs_gone.push_back(id);
  return batch;
}

Status RunBook::CheckActive(JobId id) const {
  const ReadLock lock(mutex_);
  ATHANOR_CHECK_OK(const_cast<RunBook*>(this)->Active(id));
  return Ok();
}

bool RunBook::Has(JobId id) const {
  const ReadLock lock(mutex_);
  return runs_.contains(id);
}

Resumes RunBook::ResumesOf(JobId id) const {
  const ReadLock lock(mutex_);
  const auto at = runs_.find(id);
  return at == runs_.end() ? Resumes{} : at->second.more().resumes;
}

std::optional<std::string> RunBook::TagOf(JobId id, std::string_view key) const {
  const ReadLock lock(mutex_);
  const auto at = runs_.find(id);
  const auto known = KnownKey(key);
  if (at == runs_.end() || !known) return std::nullopt;
  const auto value = at->second.tags.Find(*known);
  if (!value) return std::nullopt;
  return std::string(*value);
}

std::string RunBook::ArtifactsOf(JobId id) const {
  const ReadLock lock(mutex_);
  const auto at = runs_.find(id);
  return at == runs_.end() ? "" : ArtifactsOf(at->second);
}

std::string RunBook::ArtifactsOf(const RunEntry& run) const {
  if (!run.more().artifacts.empty()) return run.more().artifacts;
  mutex_.AssertHeldShared();
  const auto at = experiments_.find(run.experiment);
  return at == experiments_.end() ? "" : UsualArtifacts(at->second.row, run.id);
}

RunRow RunBook::RowOf(const RunEntry& run) const {
  RunRow row;
  row.id = run.id;
  row.experiment = run.experiment;
  row.name = run.name;
  row.user = UserOf(run);
  row.status = run.status;
  row.started_ms = run.started_ms;
  row.ended_ms = run.ended_ms;
  row.deleted = run.deleted;
  row.deleted_ms = run.more().deleted_ms;
  row.is_job = run.is_job;
  row.artifacts = ArtifactsOf(run);
  return row;
}

RunCounts::Sum RunBook::SumOf(int64_t experiment) const {
  const ReadLock lock(mutex_);
  return counts_.Of(experiment);
}

Result<JobId> RunBook::Resolve(std::string_view reference) const {
  const ReadLock lock(mutex_);
  if (const RunEntry* run = index_.Named(reference)) return run->id;
  const std::string digits = ToLower(reference);
  std::vector<JobId> alike;
  for (const RunEntry* run : index_.EndingWith(digits, kMostAlike + 1)) alike.push_back(run->id);
  // The first digits of ids are the time: ids that share them are next to each other.
  const auto beginning = [&](size_t all_digits, auto&& text_of) {
    mutex_.AssertHeldShared();
    if (digits.size() < RunIndex::kShortestPart || digits.size() > all_digits) return;
    const auto least = JobId::Parse(digits + std::string(all_digits - digits.size(), '0'));
    if (!least) return;
    for (auto at = runs_.lower_bound(*least); at != runs_.end() && alike.size() <= kMostAlike;
         ++at) {
      if (!StartsWith(text_of(at->first), digits)) break;
      if (!at->second.deleted && std::ranges::find(alike, at->first) == alike.end()) {
        alike.push_back(at->first);
      }
    }
  };
  beginning(26, [](JobId id) { return id.ToString(); });
  beginning(32, [](JobId id) { return id.value.ToHex(); });
  if (alike.size() == 1) return alike.front();
  const std::string shown = Printable(reference.substr(0, 200));
  if (alike.empty()) return Fail(ErrorCode::kNotFound, fmt::format("no run \"{}\"", shown));
  return Fail(ErrorCode::kConflict,
              alike.size() > kMostAlike
                  ? fmt::format("more than {} runs have \"{}\" in their ids", kMostAlike, shown)
                  : fmt::format("{} runs have \"{}\" in their ids", alike.size(), shown));
}

}  // namespace athanor
