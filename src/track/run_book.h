// RunBook has what is known about experiments and runs, in memory: rows, params, tags and the last
// value of every metric, so that a million runs are filtered and sorted without reading the disk.
// Points stay in the SeriesStore; it holds their summaries, which are made again on demand when a
// run has new points, and stored in KeptMetrics once a run is quiet.
//
// A change is checked and made here at once, and returned as the batch that makes it durable: the
// caller passes it to a RunWriter and answers when that is done. If a batch could not be stored,
// the owner calls Load with what is stored.
//
// Threads: safe from any. Changes come from one thread; searches from any. Only Search, Look and
// KeepSome read files, and no call blocks the others for longer than a few thousand runs take. A
// function given to Look or Peek must be quick and call only KeyName, UserOf and ArtifactsOf of the
// book.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/exec/shared_mutex.h"
#include "job/record.h"
#include "record/runs/kept_metrics.h"
#include "record/runs/run_rows.h"
#include "record/series/series_store.h"
#include "track/filter.h"
#include "track/run_counts.h"
#include "track/run_entry.h"
#include "track/run_index.h"
#include "track/run_place.h"
#include "track/run_table.h"

namespace athanor {

class RunStore;

struct Experiment {
  ExperimentRow row;
  std::map<std::string, std::string> tags;
};

enum class ViewType { kActive = 1, kDeleted = 2, kAll = 3 };

struct RunQuery {
  std::optional<std::vector<int64_t>> experiments;  // none: all
  ViewType view = ViewType::kActive;
  std::vector<Clause> filter;
  std::vector<OrderBy> order;     // then: newest first, then by id
  bool any_order = false;         // to get all of them: `limit` and what follows are ignored
  std::optional<RunPlace> after;  // starts after it; then at `offset`
  size_t offset = 0;
  size_t limit = 1000;
};

struct RunPage {
  std::vector<JobId> runs;
  std::vector<uint32_t> places;  // where the book had them: a hint for Look; none: in any order
  size_t matched = 0;            // of all pages
  std::optional<RunPlace> next;  // of the last run; none: there are no more
};

// How far a change of all runs of an experiment has come.
struct RunSweep {
  size_t place = 0;
  uint64_t moves = 0;
  bool done = false;
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

  // New experiments store their artifacts at `artifact_root`/ID, unless they name a place.
  explicit RunBook(SeriesStore& series, std::string artifact_root = std::string(kOwnArtifacts))
      : series_(series), artifact_root_(std::move(artifact_root)) {}
  // Loads everything again, from what is stored. `kept` is trusted, and gets what is new; it
  // outlives the book.
  Status Load(const RunStore& store, KeptMetrics* kept = nullptr);
  void Load(const RunBatch& all);

  // Experiments. kNotFound: there is none of that id, or key. kConflict: the name is taken.
  Result<Experiment> FindExperiment(int64_t id) const;
  Result<Experiment> ExperimentNamed(std::string_view name) const;
  std::vector<Experiment> Experiments() const;  // by id
  Result<RunBatch> AddExperiment(std::string name, std::string location, const Pairs& tags,
                                 int64_t now_ms, int64_t& id);
  Result<RunBatch> RenameExperiment(int64_t id, std::string name, int64_t now_ms);
  // Its runs follow, by SweepRuns.
  Result<RunBatch> SetExperimentDeleted(int64_t id, bool deleted, int64_t now_ms);
  // The same for its runs, some thousand a call, until `sweep` is done.
  RunBatch SweepRuns(int64_t experiment, bool deleted, int64_t now_ms, RunSweep& sweep);
  // No value: the tag is removed.
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
  // What a job's record says about its run; empty if none of that is new. The first call creates
  // the run, and the experiment, too.
  RunBatch Mirror(const JobRecord& record);
  // Whether Mirror of a job in that state, with that many attempts, has nothing new.
  bool IsInLine(JobId id, JobState state, size_t attempts) const;
  // The row of a run as it is, and if `whole` its params and tags; empty: there is no such run.
  RunBatch RowsOf(JobId id, bool whole) const;
  RunBatch Remove(JobId id);

  // kNotFound, or kInvalid unless it is active.
  Status CheckActive(JobId id) const;
  bool Has(JobId id) const;
  Resumes ResumesOf(JobId id) const;
  std::optional<std::string> TagOf(JobId id, std::string_view key) const;
  std::string ArtifactsOf(JobId id) const;  // URI; empty: there is no such run
  // By name (if there are several, the one that began last), or by the first or last digits of an
  // id, at least RunIndex::kShortestPart. kNotFound; kConflict: several have those digits.
  Result<JobId> Resolve(std::string_view reference) const;

  // While points of a run are being stored. One thread stores.
  class Storing {
   public:
    Storing(RunBook& book, JobId run) : book_(book), run_(run) { book_.BeforePoints(run_); }
    ~Storing() { book_.AfterPoints(run_); }
    Storing(const Storing&) = delete;
    Storing& operator=(const Storing&) = delete;

   private:
    RunBook& book_;
    const JobId run_;
  };

  RunPage Search(const RunQuery& query) const;
  // Calls `look` with each existing run, in order, with its metrics up to date.
  void Look(const std::vector<JobId>& runs, const std::function<void(const RunEntry&)>& look) const;
  void Look(const RunPage& page, const std::function<void(const RunEntry&)>& look) const;
  // The same with metrics as of the last request: reads no file.
  void Peek(const std::vector<JobId>& runs, const std::function<void(const RunEntry&)>& look) const;
  bool IsFresh(JobId id) const;  // Look would not read a file; also if there is no such run
  RunCounts::Sum SumOf(int64_t experiment) const;
  // How many runs have each key, with its name, metrics up to date.
  std::vector<std::pair<std::string, uint32_t>> CountKeys(KeyKind kind,
                                                          std::optional<int64_t> experiment) const;

  // Stores the metrics of up to `most` runs that ended or were quiet for a while; of any if `all`.
  // Returns how many are left.
  size_t KeepSome(size_t most, bool all = false);

  // Within Look and Peek.
  const std::string& KeyName(uint32_t key) const {
    mutex_.AssertHeldShared();
    return names_[key];
  }
  const std::string& UserOf(const RunEntry& run) const { return KeyName(run.user); }
  std::string ArtifactsOf(const RunEntry& run) const;
  RunRow RowOf(const RunEntry& run) const;

 private:
  using Runs = std::map<JobId, RunEntry>;
  class Loader;

  uint32_t KeyOf(std::string_view name) const REQUIRES(mutex_);
  std::optional<uint32_t> KnownKey(std::string_view name) const REQUIRES_SHARED(mutex_);
  Result<RunEntry*> Active(JobId id) REQUIRES_SHARED(mutex_);
  Result<RunEntry*> Find(JobId id) REQUIRES_SHARED(mutex_);
  Result<Experiment*> FindExperimentLocked(int64_t id) REQUIRES_SHARED(mutex_);
  int64_t ExperimentFor(const std::string& name, int64_t now_ms, RunBatch& batch) REQUIRES(mutex_);
  void Insert(RunEntry& run)
      REQUIRES(mutex_);  // new here, with everything known about it except its labels
  void SetDeleted(RunEntry& run, bool deleted, int64_t now_ms) REQUIRES(mutex_);
  void SetTag(RunEntry& run, const std::string& key, const std::string& value, RunBatch& batch)
      REQUIRES(mutex_);
  void SetParam(RunEntry& run, const std::string& key, const std::string& value, RunBatch& batch)
      REQUIRES(mutex_);
  void PeekAt(const std::vector<JobId>& runs, const std::vector<uint32_t>& places,
              const std::function<void(const RunEntry&)>& look) const;
  void LookAt(const std::vector<JobId>& runs, const std::vector<uint32_t>& places,
              const std::function<void(const RunEntry&)>& look) const;
  void BeforePoints(JobId id);
  void AfterPoints(JobId id);
  void Changed(RunEntry& run) REQUIRES(mutex_);
  void ToKeep(RunEntry& run) const REQUIRES(mutex_);
  void Refresh(const std::vector<JobId>& runs) const;
  std::vector<JobId> StaleRuns(const std::optional<std::vector<int64_t>>& experiments,
                               ViewType view) const;
  void MakeColumns(const RunQuery& query) const;
  bool Passes(const RunEntry& run, const Clause& clause, const std::optional<uint32_t>& key) const
      REQUIRES_SHARED(mutex_);
  class Finder;
  friend class Finder;

  SeriesStore& series_;
  const std::string artifact_root_;
  KeptMetrics* kept_ = nullptr;    // may be none
  mutable FairSharedMutex mutex_;  // guards all below
  std::map<int64_t, Experiment> experiments_ GUARDED_BY(mutex_);
  std::map<std::string, int64_t, std::less<>> experiment_ids_ GUARDED_BY(mutex_);
  mutable Runs runs_ GUARDED_BY(mutex_);         // metrics are brought up to date by who asks
  RunIndex index_ GUARDED_BY(mutex_);            // of runs_
  mutable RunTable table_ GUARDED_BY(mutex_);    // of runs_
  mutable RunCounts counts_ GUARDED_BY(mutex_);  // of runs_
  mutable std::deque<JobId> to_keep_ GUARDED_BY(mutex_);
  mutable std::deque<std::string> names_ GUARDED_BY(mutex_);
  mutable std::unordered_map<std::string_view, uint32_t> keys_
      GUARDED_BY(mutex_);  // views of names_
};

std::string_view NameOf(RunStatus status);  // "RUNNING"
std::optional<RunStatus> RunStatusNamed(std::string_view name);

}  // namespace athanor
