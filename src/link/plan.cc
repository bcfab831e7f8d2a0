#include "link/plan.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "job/codec.h"

namespace athanor {
namespace {

Json PlanToJson(const AttemptPlan& plan) {
  Json json = Json::object();
  json["job"] = plan.job.ToString();
  json["attempt"] = plan.attempt.ToString();
  json["number"] = plan.number;
  json["spec"] = ToJson(plan.spec);
  json["placement"] = ToJson(plan.placement);
  json["host"] = plan.host;
  json["peers"] = Json::array();
  for (const auto& peer : plan.peers) json["peers"].push_back({peer.name, peer.address});
  json["master_port"] = plan.master_port;
  json["server"] = plan.server;
  json["pin"] = plan.pin;
  json["token"] = plan.token;
  json["kept_files"] = plan.kept_files;
  json["resume_job"] = plan.resume_job;
  json["resume_from"] = plan.resume_from;
  json["mtbf_ms"] = plan.mtbf_ms;
  json["mtbf_source"] = plan.mtbf_source;
  json["webhooks_private"] = plan.webhooks_private;
  json["config_files"] = plan.config_files;
  json["platform_params"] = Json::object();
  for (const auto& param : plan.platform_params) json["platform_params"][param.name] = param.value;
  json["instance_type"] = plan.instance_type;
  return json;
}

Result<AttemptPlan> PlanFromJson(const Json& json) {
  AttemptPlan plan;
  try {
    auto job = JobId::Parse(json.at("job").get<std::string>());
    auto attempt = AttemptId::Parse(json.at("attempt").get<std::string>());
    if (!job || !attempt) return Fail(ErrorCode::kInvalid, "plan: not an id");
    plan.job = *job;
    plan.attempt = *attempt;
    plan.number = json.at("number").get<uint32_t>();
    ATHANOR_TRY(plan.spec, SpecFromJson(json.at("spec")));
    ATHANOR_TRY(plan.placement, PlacementFromJson(json.at("placement")));
    plan.host = json.value("host", 0u);
    if (const auto peers = json.find("peers"); peers != json.end()) {
      for (const auto& peer : *peers) {
        plan.peers.push_back({peer.at(0).get<std::string>(), peer.at(1).get<std::string>()});
      }
    }
    plan.master_port = json.value("master_port", uint16_t{0});
    plan.server = json.at("server").get<std::string>();
    plan.pin = json.value("pin", "");
    plan.token = json.at("token").get<std::string>();
    plan.kept_files = json.value("kept_files", "");
    plan.resume_job = json.value("resume_job", "");
    plan.resume_from = json.value("resume_from", "");
    plan.mtbf_ms = json.value("mtbf_ms", int64_t{0});
    plan.mtbf_source = json.value("mtbf_source", "");
    plan.webhooks_private = json.value("webhooks_private", false);
    plan.config_files = json.value("config_files", std::map<std::string, std::string>());
    const auto params = json.value("platform_params", std::map<std::string, std::string>());
    for (const auto& [name, value] : params) {
      plan.platform_params.push_back({name, value, Param::Kind::kJson});
    }
    plan.instance_type = json.at("instance_type").get<std::string>();
  } catch (const nlohmann::json::exception& e) {
    return Fail(ErrorCode::kInvalid, std::string("plan: ") + e.what());
  }
  return plan;
}

// Name and place of each path.
constexpr std::pair<const char*, std::string HostPaths::*> kPaths[] = {
    {"dir", &HostPaths::dir},
    {"cache_dir", &HostPaths::cache_dir},
    {"supervisor", &HostPaths::supervisor},
    {"python_path", &HostPaths::python_path},
    {"aws_dir", &HostPaths::aws_dir},
    {"url", &HostPaths::url},
    {"hide_dir", &HostPaths::hide_dir},
    {"home", &HostPaths::home},
};

}  // namespace

std::string EncodePlan(const AttemptPlan& plan) { return DumpJson(PlanToJson(plan)); }

Result<AttemptPlan> DecodePlan(std::string_view text) {
  ATHANOR_TRY(const Json json, ParseJson(text));
  return PlanFromJson(json);
}

std::string EncodeHostPlan(const HostPlan& plan) {
  Json json = PlanToJson(plan.attempt);
  Json& paths = json["paths"] = Json::object();
  for (const auto& [name, path] : kPaths) paths[name] = plan.paths.*path;
  return DumpJson(json);
}

Result<HostPlan> DecodeHostPlan(std::string_view text) {
  ATHANOR_TRY(const Json json, ParseJson(text));
  HostPlan plan;
  ATHANOR_TRY(plan.attempt, PlanFromJson(json));
  const auto paths = json.find("paths");
  if (paths == json.end() || !paths->is_object()) {
    return Fail(ErrorCode::kInvalid, "plan: it does not say where things are on this machine");
  }
  for (const auto& [name, path] : kPaths) {
    const auto value = paths->find(name);
    if (value == paths->end() || !value->is_string()) {
      return Fail(ErrorCode::kInvalid, std::string("plan: no path ") + name);
    }
    plan.paths.*path = value->get<std::string>();
  }
  return plan;
}

}  // namespace athanor
