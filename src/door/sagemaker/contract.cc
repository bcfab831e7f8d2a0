#include "door/sagemaker/contract.h"

#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

using Sorted = nlohmann::json;  // compact with sorted keys, as the training toolkit writes

Sorted Request(const JobSpec& spec) {
  if (spec.origin != "sagemaker") return {};
  auto request = Sorted::parse(spec.request, nullptr, false);
  return request.is_object() ? request : Sorted();
}

Sorted Channels(const Sorted& request) {
  Sorted config = Sorted::object();
  if (!request.contains("InputDataConfig")) return config;
  for (const auto& channel : request["InputDataConfig"]) {
    // File, whatever was requested: that is how the data is provided.
    Sorted one = {{"TrainingInputMode", "File"},
                  {"S3DistributionType", "FullyReplicated"},
                  {"RecordWrapperType", channel.value("RecordWrapperType", "None")}};
    if (channel.contains("ContentType")) one["ContentType"] = channel["ContentType"];
    if (channel.contains("CompressionType")) one["CompressionType"] = channel["CompressionType"];
    config[channel.value("ChannelName", "")] = std::move(one);
  }
  return config;
}

std::map<std::string, std::string> Files(const Sorted& request) {
  std::map<std::string, std::string> files;
  files["hyperparameters.json"] = request.value("HyperParameters", Sorted::object()).dump();
  files["inputdataconfig.json"] = Channels(request).dump();
  constexpr std::pair<const char*, const char*> kParts[] = {
      {"DebugHookConfig", "debughookconfig.json"},
      {"ProfilerConfig", "profilerconfig.json"},
      {"TensorBoardOutputConfig", "tensorboardoutputconfig.json"}};
  for (const auto& [part, file] : kParts) {
    if (request.contains(part)) files[file] = request[part].dump();
  }
  files["trainingjobconfig.json"] = request.dump();
  return files;
}

}  // namespace

void FillContract(const JobSpec& spec, AttemptPlan& plan) {
  const auto request = Request(spec);
  if (request.is_null()) return;
  plan.config_files = Files(request);
  const auto sent = request.value("HyperParameters", Sorted::object());
  for (const auto& [name, value] : sent.items()) {
    if (StartsWith(name, "sagemaker_") && value.is_string()) {
      plan.platform_params.push_back({name, value.get<std::string>(), Param::Kind::kJson});
    }
  }
}

}  // namespace athanor
