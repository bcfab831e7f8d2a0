#include "run/mlflow/call_kinds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kRuns = "mlflow/runs/";
constexpr std::string_view kFiles = "mlflow-artifacts/artifacts/";
constexpr std::string_view kBases[] = {"/api/2.0/", "/api/3.0/", "/ajax-api/2.0/",
                                       "/ajax-api/3.0/"};

struct Row {
  std::string_view call;  // beneath mlflow/runs/
  CallKind kind;
};
// A param never changes its value, so the answer may be a refusal that the script needs; and the
// answer to an update is the run.
constexpr Row kKept[] = {
    {"log-metric", CallKind::kLog},  {"log-batch", CallKind::kLog},
    {"set-tag", CallKind::kLog},     {"log-parameter", CallKind::kTell},
    {"delete-tag", CallKind::kTell}, {"log-inputs", CallKind::kTell},
    {"outputs", CallKind::kTell},    {"log-model", CallKind::kTell},
    {"update", CallKind::kTell},
};

// What follows the API's base; empty when there is none.
std::string_view CallOf(std::string_view raw_path) {
  for (const auto base : kBases) {
    if (StartsWith(raw_path, base)) return raw_path.substr(base.size());
  }
  return {};
}

bool IsProbe(std::string_view raw_path) {
  return raw_path == "/health" || raw_path == "/version" ||
         CallOf(raw_path) == "mlflow/server-info";
}

bool IsPageFile(std::string_view raw_path) {
  return raw_path == "/get-artifact" || raw_path == "/model-versions/get-artifact" ||
         (StartsWith(CallOf(raw_path), "mlflow/logged-models/") &&
          EndsWith(raw_path, "/artifacts/files"));
}

// Whether it names a run and has the members that its kind needs.
bool IsWhole(std::string_view call, std::string_view body) {
  const auto json = ParseJson(body);
  if (!json || !json->is_object()) return false;
  const auto text = [&json](const char* name) {
    const auto at = json->find(name);
    return at != json->end() && at->is_string() && !at->get_ref<const std::string&>().empty();
  };
  if (!text("run_id") && !text("run_uuid")) return false;
  if (call == "set-tag" || call == "log-parameter" || call == "delete-tag") return text("key");
  if (call != "log-metric") return true;
  return text("key") && json->contains("value") && json->contains("timestamp");
}

}  // namespace

CallKind KindOf(std::string_view method, std::string_view raw_path, std::string_view body) {
  if (IsProbe(raw_path)) return method == "GET" ? CallKind::kProbe : CallKind::kRefused;
  if (raw_path == "/") return method == "GET" ? CallKind::kPage : CallKind::kRefused;
  if (IsPageFile(raw_path)) return CallKind::kAsk;
  const auto call = CallOf(raw_path);
  if (!StartsWith(call, "mlflow/") && !StartsWith(call, "mlflow-artifacts/")) {
    return CallKind::kRefused;
  }
  if (method != "POST" || !StartsWith(call, kRuns)) return CallKind::kAsk;
  const auto name = call.substr(kRuns.size());
  const auto* row = std::find_if(std::begin(kKept), std::end(kKept),
                                 [name](const Row& one) { return one.call == name; });
  if (row == std::end(kKept) || !IsWhole(name, body)) return CallKind::kAsk;
  const bool params = name == "log-batch" && body.find("\"params\"") != std::string_view::npos;
  return params ? CallKind::kTell : row->kind;
}

bool MayBeOld(std::string_view method, std::string_view raw_path) {
  const auto call = CallOf(raw_path);
  return method == "GET" && (call == "mlflow/runs/get" || call == "mlflow/experiments/get");
}

bool AnswersFile(std::string_view method, std::string_view raw_path) {
  return method == "GET" && (IsPageFile(raw_path) || StartsWith(CallOf(raw_path), kFiles));
}

bool SendsFile(std::string_view method, std::string_view raw_path) {
  return method == "PUT" && StartsWith(CallOf(raw_path), kFiles);
}

size_t WordsOf(std::string_view raw_path) {
  const auto call = CallOf(raw_path);
  for (const std::string_view named : {kFiles, std::string_view("mlflow-artifacts/mpu/"),
                                       std::string_view("mlflow/logged-models/")}) {
    if (StartsWith(call, named)) return raw_path.size() - call.size() + named.size();
  }
  return raw_path.size();
}

std::string AnswerForKept(std::string_view raw_path, std::string_view body) {
  if (!EndsWith(raw_path, "/mlflow/runs/update")) return "{}";
  const auto json = ParseJson(body);
  if (!json || !json->is_object()) return "{}";
  Json info = Json::object();
  for (const char* name : {"run_id", "run_uuid", "status", "end_time", "run_name"}) {
    if (const auto at = json->find(name); at != json->end()) info[name] = *at;
  }
  info["lifecycle_stage"] = "active";
  Json answer = Json::object();
  answer["run_info"] = std::move(info);
  return DumpJson(answer);
}

std::string MlflowErrorBody(std::string_view error_code, std::string_view message) {
  Json body = Json::object();
  body["error_code"] = std::string(error_code);
  body["message"] = std::string(message);
  return DumpJson(body);
}

}  // namespace athanor
