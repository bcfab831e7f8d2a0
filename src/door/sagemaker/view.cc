#include "door/sagemaker/view.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "door/aws/aws_front.h"
#include "door/sagemaker/tuning_view.h"
#include "job/object_uri.h"

namespace athanor::sagemaker {
namespace {

constexpr size_t kMostReason = 1024;

struct Phase {
  const char* status;
  std::string message;
};

std::optional<Phase> PhaseOf(const StoredEvent& event) {
  if (event.name == "stop_asked" && !IsTerminal(event.state)) {
    return Phase{"Stopping", "Stopping the training job"};
  }
  if (event.name == "stop_hastened") return std::nullopt;  // it is Stopping already
  switch (event.state) {
    case JobState::kQueued:
      if (event.name == "submitted") return Phase{"Starting", "Starting the training job"};
      if (event.name == "requeued") return Phase{"Starting", "Starting again: " + event.cause.text};
      if (event.name == "waiting") return Phase{"Pending", event.cause.text};
      return std::nullopt;
    case JobState::kPlacing:
      return Phase{"Starting", "Preparing the instances for training"};
    case JobState::kPreparing:
      return Phase{"Downloading", "Downloading input data"};
    case JobState::kRunning:
      if (event.name != "script_started") return std::nullopt;
      return Phase{"Training", "Training image download completed. Training in progress."};
    case JobState::kUploading:
      return Phase{"Uploading", "Uploading generated training model"};
    case JobState::kInterrupted:
      return Phase{"Interrupted", "Interrupted: " + event.cause.text};
    case JobState::kCompleted:
      return Phase{"Completed", "Training job completed"};
    case JobState::kFailed:
      return Phase{"Failed", "Training job failed: " + event.cause.text};
    case JobState::kStopped:
      return Phase{"Stopped", "Training job stopped: " + event.cause.text};
  }
  return std::nullopt;
}

std::string StoppedAs(const Cause& cause) {
  if (cause.Is(CauseKind::kTimeLimit)) return "MaxRuntimeExceeded";
  if (cause.Is(CauseKind::kMaxWait)) return "MaxWaitTimeExceeded";
  return "Stopped";
}

Json Transitions(const Shown& shown) {
  Json list = Json::array();
  for (const auto& event : shown.events) {
    auto phase = PhaseOf(event);
    if (!phase) continue;
    std::string status = phase->status;
    if (status == "Stopped") status = StoppedAs(shown.record.cause);
    if (!list.empty()) {
      auto& last = list.back();
      if (last["Status"] == status && last["StatusMessage"] == phase->message) continue;
      last["EndTime"] = Seconds(event.at);
    }
    list.push_back(
        {{"Status", status}, {"StartTime", Seconds(event.at)}, {"StatusMessage", phase->message}});
  }
  if (!list.empty() && IsTerminal(shown.record.state)) {
    list.back()["EndTime"] = Seconds(shown.record.ended);
  }
  // Differences from the request are reported where every client looks.
  if (!list.empty() && !shown.record.spec.notes.empty()) {
    auto& first = list.front()["StatusMessage"];
    first = first.get<std::string>() + ". Note: " + Join(shown.record.spec.notes, ". Note: ");
  }
  return list;
}

// What a job of another door would have been asked as.
Json RequestOf(const JobRecord& record) {
  const auto& spec = record.spec;
  Json request = Json::object();
  request["TrainingJobName"] = spec.name;
  Json hyper = Json::object();
  for (const auto& param : spec.params) hyper[param.name] = param.value;
  if (!hyper.empty()) request["HyperParameters"] = std::move(hyper);
  request["AlgorithmSpecification"] = {
      {"TrainingImage", spec.environment.image.empty() ? "athanor/" + spec.environment.base
                                                       : spec.environment.image},
      {"TrainingInputMode", "File"}};
  Json metrics = Json::array();
  for (const auto& metric : spec.metrics) {
    metrics.push_back({{"Name", metric.name}, {"Regex", metric.regex}});
  }
  if (!metrics.empty()) request["AlgorithmSpecification"]["MetricDefinitions"] = metrics;
  request["RoleArn"] = "arn:aws:iam::" + std::string(kAwsAccount) + ":role/athanor";
  request["OutputDataConfig"] = {{"S3OutputPath", spec.output_to}};
  request["ResourceConfig"] = {
      {"InstanceType", spec.resources.type.empty() ? "local" : spec.resources.type},
      {"InstanceCount", spec.resources.nodes}};
  request["StoppingCondition"] = Json::object();
  if (spec.limits.max_runtime.count() > 0) {
    request["StoppingCondition"]["MaxRuntimeInSeconds"] = spec.limits.max_runtime.count() / 1000;
  }
  request["EnableManagedSpotTraining"] = spec.resources.spot.use;
  if (!spec.env.empty()) request["Environment"] = spec.env;
  return request;
}

// Clients index these without asking whether they are there.
void AddDefaults(Json& view, uint32_t nodes) {
  auto put = [](Json& in, const char* key, Json value) {
    if (!in.contains(key)) in[key] = std::move(value);
  };
  for (const char* part : {"OutputDataConfig", "ResourceConfig", "StoppingCondition"}) {
    put(view, part, Json::object());
  }
  put(view["OutputDataConfig"], "KmsKeyId", "");
  put(view["ResourceConfig"], "VolumeSizeInGB", 1);
  put(view["ResourceConfig"], "InstanceCount", nodes);
  put(view["StoppingCondition"], "MaxRuntimeInSeconds", 86'400);
  for (const char* flag : {"EnableNetworkIsolation", "EnableInterContainerTrafficEncryption",
                           "EnableManagedSpotTraining"}) {
    put(view, flag, false);
  }
}

void AddRules(Json& view, const Shown& shown) {
  constexpr std::pair<const char*, const char*> kLists[] = {
      {"DebugRuleConfigurations", "DebugRuleEvaluationStatuses"},
      {"ProfilerRuleConfigurations", "ProfilerRuleEvaluationStatuses"}};
  for (const auto& [asked, said] : kLists) {
    if (!view.contains(asked) || !view[asked].is_array() || view[asked].empty()) continue;
    Json statuses = Json::array();
    for (size_t i = 0; i < view[asked].size(); ++i) {
      statuses.push_back(
          {{"RuleConfigurationName", view[asked][i].value("RuleConfigurationName", "")},
           {"RuleEvaluationJobArn",
            fmt::format("arn:aws:sagemaker:{}:{}:processing-job/{}", shown.region, kAwsAccount,
                        RuleJobName(shown.record.spec.name, asked, i))},
           {"RuleEvaluationStatus", "Stopped"},
           {"StatusDetails", kNotEvaluated},
           {"LastModifiedTime", Seconds(shown.record.created)}});
    }
    view[said] = std::move(statuses);
  }
  if (view.contains("ProfilerConfig")) view["ProfilingStatus"] = "Disabled";
}

void AddTimes(Json& view, const JobRecord& record) {
  view["CreationTime"] = Seconds(record.created);
  view["LastModifiedTime"] = Seconds(record.updated.ms ? record.updated : record.created);
  int64_t trained_ms = 0, held_ms = 0;
  WallTime first{};
  for (const auto& attempt : record.attempts) {
    held_ms += attempt.held_ms;
    if (attempt.started.ms == 0) continue;
    if (first.ms == 0) first = attempt.started;
    if (attempt.exited.ms != 0) trained_ms += attempt.exited.ms - attempt.started.ms;
  }
  if (first.ms != 0) view["TrainingStartTime"] = Seconds(first);
  if (!IsTerminal(record.state)) return;
  view["TrainingEndTime"] = Seconds(record.ended);
  if (first.ms == 0) return;
  // Never zero: clients divide by it.
  const int64_t training = std::max<int64_t>((trained_ms + 999) / 1000, 1);
  int64_t billable = training;
  if (record.price.micros_per_hour > 0) {
    // Of one instance, as the service counts: clients multiply it by InstanceCount.
    const double paid = static_cast<double>(CostMicros(record)) /
                        static_cast<double>(std::max(record.spec.resources.nodes, 1u));
    billable = std::max<int64_t>(
        static_cast<int64_t>(
            std::llround(paid * 3600 / static_cast<double>(record.price.micros_per_hour))),
        1);
  }
  view["TrainingTimeInSeconds"] = training;
  view["BillableTimeInSeconds"] = billable;
}

void AddResults(Json& view, const Shown& shown) {
  const auto& record = shown.record;
  Json metrics = Json::array();
  for (const auto& metric : shown.metrics) {
    if (!std::isfinite(metric.last)) continue;
    const auto millis = metric.last_wall_ns / 1'000'000;
    metrics.push_back({{"MetricName", metric.name},
                       {"Value", metric.last},
                       {"Timestamp", static_cast<double>(millis) / 1000}});
  }
  if (!metrics.empty()) view["FinalMetricDataList"] = std::move(metrics);
  // Files of the working folder are not put there.
  const bool kept = record.state == JobState::kCompleted ||
                    std::any_of(record.outputs.begin(), record.outputs.end(),
                                [](const Output& output) { return !output.is_listing(); });
  if (IsTerminal(record.state) && kept && !record.spec.output_to.empty()) {
    if (auto root = ObjectUri::Parse(record.spec.output_to)) {
      const auto model = *root / record.spec.name / "output" /
                         (record.spec.output_plain ? "model/" : "model.tar.gz");
      view["ModelArtifacts"] = {{"S3ModelArtifacts", model.ToString()}};
    }
  } else if (record.state == JobState::kCompleted) {
    view["ModelArtifacts"] = {{"S3ModelArtifacts", ""}};
  }
  if (auto reason = FailureReason(record); !reason.empty()) view["FailureReason"] = reason;
  if (view["ResourceConfig"].value("KeepAlivePeriodInSeconds", 0) > 0 && IsTerminal(record.state)) {
    view["WarmPoolStatus"] = {{"Status", "Terminated"},
                              {"ResourceRetainedBillableTimeInSeconds", 0}};
  }
}

}  // namespace

double Seconds(WallTime at) { return static_cast<double>(at.ms) / 1000; }

std::string TrainingJobArn(std::string_view region, std::string_view name) {
  return fmt::format("arn:aws:sagemaker:{}:{}:training-job/{}", region, kAwsAccount, name);
}

std::string RuleJobName(std::string_view job, std::string_view list, size_t index) {
  return fmt::format("{}-{}-{}", job, StartsWith(list, "Debug") ? "debugrule" : "profilerrule",
                     index + 1);
}

std::string StatusOf(JobState state) {
  switch (state) {
    case JobState::kCompleted:
      return "Completed";
    case JobState::kFailed:
      return "Failed";
    case JobState::kStopped:
      return "Stopped";
    case JobState::kQueued:
    case JobState::kPlacing:
    case JobState::kPreparing:
    case JobState::kRunning:
    case JobState::kUploading:
    case JobState::kInterrupted:
      break;
  }
  return "InProgress";
}

std::string StatusOf(const JobRecord& record) {
  if (record.stop && !IsTerminal(record.state)) return "Stopping";
  return StatusOf(record.state);
}

std::string SecondaryStatusOf(const JobRecord& record) {
  if (record.stop && !IsTerminal(record.state)) return "Stopping";
  switch (record.state) {
    case JobState::kQueued:
      return record.cause.Is(CauseKind::kQueued) || record.cause.kind.empty() ? "Starting"
                                                                              : "Pending";
    case JobState::kPlacing:
      return "Starting";
    case JobState::kPreparing:
      return "Downloading";
    case JobState::kRunning:
      return "Training";
    case JobState::kUploading:
      return "Uploading";
    case JobState::kInterrupted:
      return "Interrupted";
    case JobState::kStopped:
      return StoppedAs(record.cause);
    case JobState::kCompleted:
    case JobState::kFailed:
      break;
  }
  return StatusOf(record.state);
}

std::string FailureReason(const JobRecord& record) {
  if (record.state != JobState::kFailed) return {};
  const auto& cause = record.cause;
  const bool ran = record.current() && record.current()->exit;
  std::string reason = ran ? "AlgorithmError: " : "ClientError: ";
  if (cause.Is(CauseKind::kAgentLost) || cause.Is(CauseKind::kLaunchFailed)) {
    reason = "InternalServerError: ";
  }
  reason += cause.text;
  if (!cause.detail.empty()) reason += "\n" + cause.detail;
  if (ran) {
    const auto& exit = *record.current()->exit;
    reason += ", exit code: " + std::to_string(exit.code >= 0 ? exit.code : 128 + exit.signal);
  }
  if (!cause.hint.empty()) reason += " (" + cause.hint + ")";
  // Cut between characters.
  if (reason.size() > kMostReason) {
    size_t end = kMostReason;
    while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
    reason.resize(end);
  }
  return reason;
}

Json DescribeView(const Shown& shown) {
  const auto& record = shown.record;
  Json view = Json::object();
  if (!record.spec.request.empty()) {
    if (auto request = ParseJson(record.spec.request)) view = std::move(*request);
  }
  if (view.empty()) view = RequestOf(record);
  view.erase("Tags");
  if (shown.changes && shown.changes->is_object()) {
    for (const auto& [key, value] : shown.changes->items()) {
      if (value.is_object() && view.contains(key) && view[key].is_object()) {
        view[key].merge_patch(value);
      } else {
        view[key] = value;
      }
    }
  }
  view["TrainingJobName"] = record.spec.name;
  view["TrainingJobArn"] = TrainingJobArn(shown.region, record.spec.name);
  if (const auto study = record.spec.tags.find("athanor.study");
      study != record.spec.tags.end() && record.spec.origin == "sagemaker") {
    view["TuningJobArn"] = TuningJobArn(shown.region, study->second);
  }
  view["TrainingJobStatus"] = StatusOf(record);
  view["SecondaryStatus"] = SecondaryStatusOf(record);
  view["SecondaryStatusTransitions"] = Transitions(shown);
  AddDefaults(view, shown.record.spec.resources.nodes);
  AddRules(view, shown);
  AddTimes(view, record);
  AddResults(view, shown);
  return view;
}

}  // namespace athanor::sagemaker
