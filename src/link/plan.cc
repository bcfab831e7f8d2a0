#include "link/plan.h"

#include <nlohmann/json.hpp>

#include "job/codec.h"

namespace athanor {

std::string EncodePlan(const AttemptPlan& plan) {
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
  json["dir"] = plan.dir;
  json["server"] = plan.server;
  json["url"] = plan.url;
  json["aws_dir"] = plan.aws_dir;
  json["token"] = plan.token;
  json["blob_dir"] = plan.blob_dir;
  json["cache_dir"] = plan.cache_dir;
  json["job_dir"] = plan.job_dir;
  json["hide_dir"] = plan.hide_dir;
  json["supervisor"] = plan.supervisor;
  json["python_path"] = plan.python_path;
  json["kept_files"] = plan.kept_files;
  json["resume_dir"] = plan.resume_dir;
  json["resume_from"] = plan.resume_from;
  json["mtbf_ms"] = plan.mtbf_ms;
  json["mtbf_source"] = plan.mtbf_source;
  json["webhooks_private"] = plan.webhooks_private;
  json["config_files"] = plan.config_files;
  json["platform_params"] = Json::object();
  for (const auto& param : plan.platform_params) json["platform_params"][param.name] = param.value;
  json["instance_type"] = plan.instance_type;
  return DumpJson(json);
}

Result<AttemptPlan> DecodePlan(std::string_view text) {
  ATHANOR_TRY(Json json, ParseJson(text));
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
    plan.dir = json.at("dir").get<std::string>();
    plan.server = json.at("server").get<std::string>();
    plan.url = json.value("url", "");
    plan.aws_dir = json.value("aws_dir", "");
    plan.token = json.at("token").get<std::string>();
    plan.blob_dir = json.at("blob_dir").get<std::string>();
    plan.cache_dir = json.at("cache_dir").get<std::string>();
    plan.job_dir = json.at("job_dir").get<std::string>();
    plan.hide_dir = json.at("hide_dir").get<std::string>();
    plan.supervisor = json.at("supervisor").get<std::string>();
    plan.python_path = json.at("python_path").get<std::string>();
    plan.kept_files = json.value("kept_files", "");
    plan.resume_dir = json.value("resume_dir", "");
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

}  // namespace athanor
