// The calls of MLflow's REST API, each a function from fields to an answer. What they share
// is the DoorContext and, per job, the experiment its script named last.
//
// Threads: the loop's, except calls that the table (mlflow_routes.cc) marks as slow reads.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "base/text/json_writer.h"
#include "door/mlflow/wire.h"
#include "track/run_book.h"

namespace athanor {

struct Mlflow {
  DoorContext& context;
  // A script in a job that names an experiment means it for the job's own run: MLflow's client
  // refuses to continue with a run of another one.
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
  // What to call, on another thread, if the named run has points that were not read yet.
  MlflowHandler of_stale_run = nullptr;
};

std::span<const MlflowCall> ExperimentCalls();
std::span<const MlflowCall> RunCalls();
std::span<const MlflowCall> MetricCalls();
std::span<const MlflowCall> HistoryCalls();
std::span<const MlflowCall> ModelCalls();
std::span<const MlflowCall> LoggedModelCalls();

// ACTIVE_ONLY, DELETED_ONLY or ALL, by name or number; active if it is absent.
Result<ViewType> ReadView(const Fields& fields, std::string_view name);

void WriteRunInfo(JsonWriter& json, const RunRow& run);
// Writes runs within RunBook::Look. Most of a long answer is the names of the same labels and
// metrics, so each is converted to JSON once.
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
// Writes points of one series, of which there may be many: what they share is converted once.
class PointWriter {
 public:
  PointWriter(JsonWriter& json, std::string_view key, std::string_view run_id = {});
  void Write(const SeriesPoint& point);

 private:
  JsonWriter& json_;
  std::string text_;    // of a point, up to its value
  size_t begin_ = 0;    // the length of what points share there
  std::string ending_;  // what they share after the step
};
void WritePairs(JsonWriter& json, std::string_view name,
                const std::map<std::string, std::string>& pairs);

}  // namespace athanor
