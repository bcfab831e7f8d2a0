// The calls of MLflow's REST API, each a function from fields to an answer. What they share
// is the DoorContext and, per job, the experiment its script named last.
//
// Threads: the loop's, but for calls that the table (mlflow_routes.cc) marks as slow reads.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/json_writer.h"
#include "door/mlflow/wire.h"
#include "track/run_book.h"

namespace athanor {

struct Mlflow {
  DoorContext& context;
  // A script in a job that names an experiment means it for the job's own run: MLflow's
  // client refuses to go on with a run of another one.
  std::map<JobId, int64_t> named_experiment;

  int64_t Now() const { return context.clock.Wall().ms; }
  std::optional<JobId> JobOf(const Call& call) const;
};

using MlflowHandler = Result<Answer> (*)(Mlflow& mlflow, const Fields& fields, const Call& call);

struct MlflowCall {
  const char* method;
  const char* path;  // beneath /api and /ajax-api
  const char* name;
  Access need;
  MlflowHandler handler;
  bool slow = false;  // a read that belongs on a thread of its own
  // The same for requests that can be answered at once, without a Fields or a thread; none: not
  // this one.
  std::optional<Result<Answer>> (*plain)(Mlflow& mlflow, const Call& call) = nullptr;
  // What to call, on a thread of its own, when the run that is named has points that were not looked
  // at yet.
  MlflowHandler of_stale_run = nullptr;
};

std::span<const MlflowCall> ExperimentCalls();
std::span<const MlflowCall> RunCalls();
std::span<const MlflowCall> MetricCalls();
std::span<const MlflowCall> HistoryCalls();
std::span<const MlflowCall> ModelCalls();
std::span<const MlflowCall> LoggedModelCalls();

// ACTIVE_ONLY, DELETED_ONLY or ALL, by name or number; active when it is absent.
Result<ViewType> ReadView(const Fields& fields, std::string_view name);

void WriteRunInfo(JsonWriter& json, const RunRow& run);
// Writes runs within RunBook::Look; most of an answer with many is the names of the same labels and
// metrics, so each is put in JSON once.
class RunJson {
 public:
  RunJson(JsonWriter& json, const DoorContext& context) : json_(json), context_(context) {}
  void Write(const RunEntry& run);

 private:
  void WriteLabels(std::string_view name, const RunLabels& labels);
  void WriteMetrics(const RunEntry& run);
  const std::string& HeadOf(uint32_t key);

  JsonWriter& json_;
  const DoorContext& context_;
  std::unordered_map<uint32_t, std::string> heads_;  // {"key":"loss","value":
  std::string text_;
};
// Writes points of one series, of which there may be many: what they share is put in words once.
class PointWriter {
 public:
  PointWriter(JsonWriter& json, std::string_view key, std::string_view run_id = {});
  void Write(const SeriesPoint& point);

 private:
  JsonWriter& json_;
  std::string text_;    // of a point, up to its value
  size_t begin_ = 0;    // the length of what points share there
  std::string ending_;  // what they share behind the step
};
void WritePairs(JsonWriter& json, std::string_view name,
                const std::map<std::string, std::string>& pairs);

}  // namespace athanor
