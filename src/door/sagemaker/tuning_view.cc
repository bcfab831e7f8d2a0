#include "door/sagemaker/tuning_view.h"

#include <nlohmann/json.hpp>

#include "door/aws/aws_front.h"
#include "door/sagemaker/trials.h"
#include "door/sagemaker/view.h"

namespace athanor::sagemaker {
namespace {

constexpr size_t kLongestReason = 1024;

// The SDK sends one of the two and reads the other.
void AddBothResources(Json& definition) {
  if (!definition.is_object()) return;
  constexpr char kOurs[] = "HyperParameterTuningResourceConfig";
  if (definition.contains(kOurs) && !definition.contains("ResourceConfig")) {
    definition["ResourceConfig"] = definition[kOurs];
  } else if (definition.contains("ResourceConfig") && !definition.contains(kOurs)) {
    definition[kOurs] = definition["ResourceConfig"];
  }
  if (definition.contains("OutputDataConfig") &&
      !definition["OutputDataConfig"].contains("KmsKeyId")) {
    definition["OutputDataConfig"]["KmsKeyId"] = "";
  }
}

Json TuningRequest(const StudyRecord& record) {
  auto kept = ParseJson(record.spec.request);
  return kept && kept->contains("tuning") ? (*kept)["tuning"] : Json::object();
}

Json CountersOf(const StudyRecord& record) {
  uint64_t lost = 0;
  for (const auto& trial : record.trials) lost += trial.losses;
  return {{"Completed", record.Count(TrialState::kDone)},
          {"InProgress", record.Live()},
          {"RetryableError", lost},
          {"NonRetryableError", record.Count(TrialState::kFailed)},
          {"Stopped", record.Count(TrialState::kStopped)}};
}

std::string ObjectiveStatusOf(const TrialRecord& trial) {
  if (!IsOver(trial.state)) return "Pending";
  return trial.value ? "Succeeded" : "Failed";
}

Json ObjectivesOf(const StudyRecord& record) {
  Json counts = {{"Succeeded", 0}, {"Pending", 0}, {"Failed", 0}};
  for (const auto& trial : record.trials) {
    auto& count = counts[ObjectiveStatusOf(trial)];
    count = count.get<int64_t>() + 1;
  }
  return counts;
}

void AddObjective(const StudyRecord& record, Json& definition) {
  // The service tells the jobs what is optimised this way, and clients take it out again.
  definition["StaticHyperParameters"]["_tuning_objective_metric"] = record.spec.metric;
}

}  // namespace

std::string TuningJobArn(std::string_view region, std::string_view name) {
  return "arn:aws:sagemaker:" + std::string(region) + ":" + kAwsAccount +
         ":hyper-parameter-tuning-job/" + std::string(name);
}

std::string TuningStatusOf(const StudyRecord& record) {
  switch (record.state) {
    case StudyState::kRunning:
      return "InProgress";
    case StudyState::kFinishing:
      return record.finish == StudyState::kStopped ? "Stopping" : "InProgress";
    case StudyState::kCompleted:
      return "Completed";
    case StudyState::kStopped:
      return "Stopped";
    case StudyState::kFailed:
      return "Failed";
  }
  return "";
}

std::string TrialNameOf(const StudyRecord& record, const TrialRecord& trial) {
  // A lost trial that is not submitted again yet is known by its last job.
  const auto losses =
      trial.state == TrialState::kAsked && trial.losses > 0 ? trial.losses - 1 : trial.losses;
  return TrialName({record.id, record.spec, record.user, trial.number, trial.params, losses});
}

Json TrialSummaryView(const StudyRecord& record, const TrialRecord& trial,
                      const std::string& region, const JobRecord* job) {
  const auto name = TrialNameOf(record, trial);
  Json tuned = Json::object();
  const auto params = ParseJson(trial.params).value_or(Json::object());
  for (const auto& [key, value] : params.items()) {
    if (key == kDefinition) continue;
    const auto cut = params.contains(kDefinition) ? key.find(kOf) : std::string::npos;
    tuned[cut == std::string::npos ? key : key.substr(cut + 1)] =
        value.is_string() ? value.get<std::string>() : DumpJson(value);
  }
  std::string status = "InProgress";
  if (job) {
    status = StatusOf(*job);
  } else if (IsOver(trial.state)) {
    status = trial.state == TrialState::kDone     ? "Completed"
             : trial.state == TrialState::kFailed ? "Failed"
                                                  : "Stopped";
  }
  Json out = {{"TrainingJobName", name},
              {"TrainingJobArn", TrainingJobArn(region, name)},
              {"TuningJobName", record.spec.name},
              {"CreationTime", Seconds(trial.asked)},
              {"TrainingJobStatus", status},
              {"TunedHyperParameters", std::move(tuned)},
              {"ObjectiveStatus", ObjectiveStatusOf(trial)}};
  if (params.contains(kDefinition)) out["TrainingJobDefinitionName"] = params[kDefinition];
  if (job && !job->attempts.empty() && job->attempts.front().started.ms > 0) {
    out["TrainingStartTime"] = Seconds(job->attempts.front().started);
  }
  if (trial.ended.ms > 0) out["TrainingEndTime"] = Seconds(trial.ended);
  if (trial.state == TrialState::kFailed) {
    out["FailureReason"] = trial.cause.text.substr(0, kLongestReason);
  }
  if (trial.value) {
    out["FinalHyperParameterTuningJobObjectiveMetric"] = {
        {"Type", record.spec.maximize ? "Maximize" : "Minimize"},
        {"MetricName", record.spec.metric},
        {"Value", *trial.value}};
  }
  return out;
}

Json DescribeTuningView(const StudyRecord& record, const std::string& region,
                        const JobRecord* best) {
  Json view = TuningRequest(record);
  view.erase("Tags");
  view["HyperParameterTuningJobName"] = record.spec.name;
  view["HyperParameterTuningJobArn"] = TuningJobArn(region, record.spec.name);
  view["HyperParameterTuningJobStatus"] = TuningStatusOf(record);
  if (record.state == StudyState::kFailed) {
    auto reason = record.cause.text;
    if (!record.cause.detail.empty()) reason += "\n" + record.cause.detail;
    view["FailureReason"] = reason.substr(0, kLongestReason);
  }
  view["CreationTime"] = Seconds(record.created);
  view["LastModifiedTime"] = Seconds(record.updated);
  if (record.ended.ms > 0) view["HyperParameterTuningEndTime"] = Seconds(record.ended);
  view["TrainingJobStatusCounters"] = CountersOf(record);
  view["ObjectiveStatusCounters"] = ObjectivesOf(record);
  int64_t held = 0;
  for (const auto& trial : record.trials) held += trial.held_ms;
  view["ConsumedResources"] = {{"RuntimeInSeconds", held / 1000}};
  if (const auto* trial = record.Best()) {
    view["BestTrainingJob"] = TrialSummaryView(record, *trial, region, best);
    if (view.contains("WarmStartConfig") && !record.spec.transfer) {
      view["OverallBestTrainingJob"] = view["BestTrainingJob"];
    }
  }
  if (view.contains("TrainingJobDefinition")) {
    AddBothResources(view["TrainingJobDefinition"]);
    AddObjective(record, view["TrainingJobDefinition"]);
  }
  if (view.contains("TrainingJobDefinitions")) {
    for (auto& definition : view["TrainingJobDefinitions"]) {
      AddBothResources(definition);
      AddObjective(record, definition);
    }
  }
  return view;
}

Json TuningSummaryView(const StudyRecord& record, const std::string& region) {
  const auto view = DescribeTuningView(record, region, nullptr);
  Json row = Json::object();
  for (const char* key :
       {"HyperParameterTuningJobName", "HyperParameterTuningJobArn",
        "HyperParameterTuningJobStatus", "CreationTime", "LastModifiedTime",
        "HyperParameterTuningEndTime", "TrainingJobStatusCounters", "ObjectiveStatusCounters"}) {
    if (view.contains(key)) row[key] = view[key];
  }
  const auto config = view.value("HyperParameterTuningJobConfig", Json::object());
  row["Strategy"] = config.value("Strategy", "");
  row["ResourceLimits"] = config.value("ResourceLimits", Json::object());
  return row;
}

}  // namespace athanor::sagemaker
