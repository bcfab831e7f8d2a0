// RunBook is what is known of experiments and runs, in memory: rows, params, tags and the
// last value of every metric, so that ten thousand runs are filtered and sorted without
// touching the disk. Points stay in the SeriesStore; of them it holds summaries, made anew
// when a run has new points and somebody asks.
//
// A change is checked and made here at once, and returned as the batch that makes it
// durable: the caller hands it to a RunWriter and answers when that says so. When a batch
// could not be kept, the owner calls Load with what is.
//
// Threads: safe from any. Changes come from one thread; searches from any. A function given
// to Look must be quick and not call the book.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "job/record.h"
#include "record/runs/run_rows.h"
#include "record/series/series_store.h"
#include "track/filter.h"
#include "track/run_entry.h"
#include "track/run_table.h"

namespace athanor {

struct Experiment {
  ExperimentRow row;
  std::map<std::string, std::string> tags;
};

enum class ViewType { kActive = 1, kDeleted = 2, kAll = 3 };

struct RunQuery {
  std::optional<std::vector<int64_t>> experiments;  // none: all
  ViewType view = ViewType::kActive;
  std::vector<Clause> filter;
  std::vector<OrderBy> order;  // then: newest first, then by id
  size_t offset = 0;
  size_t limit = 1000;
};

struct RunPage {
  std::vector<JobId> runs;
  size_t matched = 0;  // of all pages
};

struct NewRun {
  JobId id;
  int64_t experiment = 0;
  std::string name;
  std::string user;
  int64_t started_ms = 0;
  std::vector<std::pair<std::string, std::string>> tags;
};

struct RunUpdate {
  std::optional<RunStatus> status;
  std::optional<int64_t> ended_ms;
  std::optional<std::string> name;
};

// The root of artifacts that the server keeps itself.
inline constexpr std::string_view kOwnArtifacts = "mlflow-artifacts:";

class RunBook {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  // New experiments keep their artifacts at `artifact_root`/ID, unless they name a place.
  explicit RunBook(SeriesStore& series, std::string artifact_root = std::string(kOwnArtifacts))
      : series_(series), artifact_root_(std::move(artifact_root)) {}
  void Load(const RunBatch& all);

  // Experiments. kNotFound: there is none of that id, or key. kConflict: the name is taken.
  Result<Experiment> FindExperiment(int64_t id) const;
  Result<Experiment> ExperimentNamed(std::string_view name) const;
  std::vector<Experiment> Experiments() const;  // by id
  Result<RunBatch> AddExperiment(std::string name, std::string location, const Pairs& tags,
                                 int64_t now_ms, int64_t& id);
  Result<RunBatch> RenameExperiment(int64_t id, std::string name, int64_t now_ms);
  // With all its runs.
  Result<RunBatch> SetExperimentDeleted(int64_t id, bool deleted, int64_t now_ms);
  // No value: the tag is taken away.
  Result<RunBatch> TagExperiment(int64_t id, const std::string& key,
                                 std::optional<std::string> value, int64_t now_ms);

  // Runs. kNotFound: no such run. kInvalid: it is deleted, or a param has another value.
  Result<RunBatch> AddRun(const NewRun& run);
  Result<RunBatch> UpdateRun(JobId id, const RunUpdate& update);
  Result<RunBatch> SetRunDeleted(JobId id, bool deleted, int64_t now_ms);
  Result<RunBatch> LogParams(JobId id, const Pairs& params);
  Result<RunBatch> SetTags(JobId id, const Pairs& tags);
  Result<RunBatch> DeleteTag(JobId id, const std::string& key);
  Result<RunBatch> AddInputs(JobId id, std::vector<DatasetRow> datasets,
                             std::vector<InputRow> inputs, std::vector<ModelLinkRow> links);
  Result<RunBatch> MoveRun(JobId id, int64_t experiment);
  // What a job's record says of its run; empty when nothing of that is new. Its first call
  // makes the run, and the experiment too.
  RunBatch Mirror(const JobRecord& record);
  // The row of a run as it is, and if `whole` its params and tags; empty: there is no such run.
  RunBatch RowsOf(JobId id, bool whole) const;
  RunBatch Remove(JobId id);

  // kNotFound, or kInvalid unless it is active.
  Status CheckActive(JobId id) const;
  bool Has(JobId id) const;
  // New points were stored.
  void Touch(JobId id);
  Resumes ResumesOf(JobId id) const;
  std::optional<std::string> TagOf(JobId id, std::string_view key) const;

  RunPage Search(const RunQuery& query) const;
  // Calls `look` with each run that is there, in order, with its metrics up to date.
  void Look(const std::vector<JobId>& runs, const std::function<void(const RunEntry&)>& look) const;
  const std::string& KeyName(uint32_t key) const { return names_[key]; }  // within Look

 private:
  using Runs = std::map<JobId, std::unique_ptr<RunEntry>>;

  uint32_t KeyOf(std::string_view name) const;
  std::optional<uint32_t> KnownKey(std::string_view name) const;
  Result<RunEntry*> Active(JobId id);
  Result<RunEntry*> Find(JobId id);
  Result<Experiment*> FindExperimentLocked(int64_t id);
  int64_t ExperimentFor(const std::string& name, int64_t now_ms, RunBatch& batch);
  void SetTag(RunEntry& run, const std::string& key, const std::string& value, RunBatch& batch);
  void SetParam(RunEntry& run, const std::string& key, const std::string& value, RunBatch& batch);
  void Refresh(const std::vector<JobId>& runs) const;
  std::vector<JobId> StaleRuns(const RunQuery& query) const;
  void MakeColumns(const RunQuery& query) const;
  bool Passes(const RunEntry& run, const Clause& clause,
              const std::optional<uint32_t>& key) const;

  SeriesStore& series_;
  const std::string artifact_root_;
  mutable std::shared_mutex mutex_;  // guards all below
  std::map<int64_t, Experiment> experiments_;
  std::map<std::string, int64_t, std::less<>> experiment_ids_;
  Runs runs_;
  mutable RunTable table_;  // of runs_
  mutable std::deque<std::string> names_;
  mutable std::unordered_map<std::string_view, uint32_t> keys_;  // views of names_
  mutable std::mutex refreshing_;  // one at a time; taken before mutex_
};

std::string_view NameOf(RunStatus status);  // "RUNNING"
std::optional<RunStatus> RunStatusNamed(std::string_view name);
// The first of that key, by key number; null: there is none.
const RunLabel* FindLabel(const std::vector<RunLabel>& labels, uint32_t key);

}  // namespace athanor
