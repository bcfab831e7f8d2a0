#include "door/sagemaker/trials.h"

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "door/sagemaker/images.h"
#include "door/sagemaker/request.h"
#include "job/codec.h"

namespace athanor::sagemaker {
namespace {

// Members of a definition that are not a training job's.
constexpr std::string_view kNotTraining[] = {"DefinitionName", "TuningObjective",
                                             "HyperParameterRanges", "StaticHyperParameters",
                                             "HyperParameterTuningResourceConfig"};

const Json& DefinitionOf(const Json& tuning, const Json& params) {
  static const Json kNone = Json::object();
  if (tuning.contains("TrainingJobDefinition")) return tuning["TrainingJobDefinition"];
  if (!tuning.contains("TrainingJobDefinitions")) return kNone;
  const auto chosen = params.value(kDefinition, "");
  for (const auto& each : tuning["TrainingJobDefinitions"]) {
    if (each.value("DefinitionName", "") == chosen) return each;
  }
  return kNone;
}

}  // namespace

std::string TrialName(const TrialOrder& order) {
  const auto digits = Sha256Hex(order.key()).substr(0, 8);
  return fmt::format("{}-{:03}-{}", order.spec.name, order.trial, digits);
}

Json TrainingBody(const Json& tuning, const std::string& name, const Json& params) {
  const auto& definition = DefinitionOf(tuning, params);
  Json body = {{"TrainingJobName", name}};
  for (const auto& [key, value] : definition.items()) {
    bool training = true;
    for (const auto each : kNotTraining) training = training && key != each;
    if (training) body[key] = value;
  }
  if (const auto own = definition.find("HyperParameterTuningResourceConfig");
      own != definition.end() && !body.contains("ResourceConfig")) {
    body["ResourceConfig"] = *own;
    body["ResourceConfig"].erase("AllocationStrategy");
    body["ResourceConfig"].erase("InstanceConfigs");
  }
  Json values = definition.value("StaticHyperParameters", Json::object());
  const auto objective = tuning.value("HyperParameterTuningJobConfig", Json::object())
                             .value("HyperParameterTuningJobObjective",
                                    definition.value("TuningObjective", Json::object()));
  if (objective.contains("MetricName"))
    values["_tuning_objective_metric"] = objective["MetricName"];
  for (const auto& [key, value] : params.items()) {
    if (key == kDefinition) continue;
    const auto cut = key.find(kOf);
    const auto plain =
        params.contains(kDefinition) && cut != std::string::npos ? key.substr(cut + 1) : key;
    values[plain] = value.is_string() ? value.get<std::string>() : DumpJson(value);
  }
  body["HyperParameters"] = std::move(values);
  if (tuning.contains("Tags")) body["Tags"] = tuning["Tags"];
  return body;
}

Result<JobSpec> TrialSpec(const DoorContext& context, const TrialOrder& order, const Json& params) {
  ATHANOR_TRY(const auto kept, ParseJson(order.spec.request));
  const auto& tuning = kept["tuning"];
  const auto body = TrainingBody(tuning, TrialName(order), params);
  ATHANOR_TRY(const auto images, ImageMap::Read(JoinPath(context.info.home, "images.yaml")));
  auto request = ReadTrainingRequest(body, {images, LookAtHost(), context.inventory.gpus > 0});
  if (!request) return Fail(ErrorCode::kInvalid, request.error().message);
  auto spec = std::move(request->spec);
  // The source was unpacked when the tuning job was created, for each definition.
  ATHANOR_TRY(const auto job,
              SpecFromJson(kept["jobs"].value(params.value(kDefinition, ""), Json::object())));
  spec.source = job.source;
  spec.environment.requirements = job.environment.requirements;
  if (spec.command.empty()) {
    spec.command = CommandFor(request->program, request->args);
    spec.entry = request->program;
  }
  spec.experiment = spec.experiment.empty() ? order.spec.name : spec.experiment;
  spec.tags["athanor.study"] = order.spec.name;
  spec.tags["athanor.trial"] = std::to_string(order.trial);
  return spec;
}

}  // namespace athanor::sagemaker
