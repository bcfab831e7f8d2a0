#include "link/aws_environment.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/json.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kJobPrefix = "ATHJ";
constexpr size_t kSecretSize = 40;

struct Service {
  const char* folder;   // as botocore calls it
  const char* version;  // of its API
};
constexpr Service kServices[] = {
    {"cloudwatch", "2010-08-01"},
    {"iam", "2010-05-08"},
    {"logs", "2014-03-28"},
    {"s3", "2006-03-01"},
    {"sagemaker", "2017-07-24"},
    {"sagemaker-featurestore-runtime", "2020-07-01"},
    {"sagemaker-metrics", "2022-09-30"},
    {"sagemaker-runtime", "2017-05-13"},
    {"sts", "2011-06-15"},
};

Json EndpointJson(const std::string& url) {
  Json endpoint = {{"url", url}, {"properties", Json::object()}, {"headers", Json::object()}};
  if (url.find("{Bucket}") != std::string::npos) {
    endpoint["properties"]["authSchemes"] = Json::array(
        {Json{{"name", "sigv4"}, {"signingName", "s3"}, {"disableDoubleEncoding", true}}});
  }
  return endpoint;
}

Json Rule(Json conditions, const std::string& url) {
  return {
      {"conditions", std::move(conditions)}, {"endpoint", EndpointJson(url)}, {"type", "endpoint"}};
}

// botocore's rules for one service: this server, or an endpoint that a program names itself. For
// STS only this server, because the SageMaker SDK names Amazon's host.
std::string RuleSet(std::string_view service, const std::string& url) {
  const auto is_set = [](const char* name) {
    return Json{{"fn", "isSet"}, {"argv", Json::array({Json{{"ref", name}}})}};
  };
  const auto text = [](const char* built_in) {
    Json parameter = {{"required", false}, {"documentation", ""}, {"type", "String"}};
    if (built_in) parameter["builtIn"] = built_in;
    return parameter;
  };
  Json parameters = {{"Region", text("AWS::Region")}, {"Endpoint", text("SDK::Endpoint")}};
  Json rules = Json::array();
  if (service == "s3") {
    parameters["Bucket"] = text(nullptr);
    rules.push_back(
        Rule(Json::array({is_set("Bucket"), is_set("Endpoint")}), "{Endpoint}/{Bucket}"));
    rules.push_back(Rule(Json::array({is_set("Bucket")}), url + "/{Bucket}"));
  }
  if (service != "sts") rules.push_back(Rule(Json::array({is_set("Endpoint")}), "{Endpoint}"));
  rules.push_back(Rule(Json::array(), url));
  return DumpJsonPretty(Json{{"version", "1.0"}, {"parameters", parameters}, {"rules", rules}}) +
         "\n";
}

Status KeepFile(const std::string& path, const std::string& text) {
  if (const auto now = ReadFile(path, 1 << 20); now && *now == text) return Ok();
  return ReplaceFile(path, text, 0644);
}

}  // namespace

AwsKey KeyOfAttempt(AttemptId attempt, std::string_view token, uint32_t host) {
  // One way: someone who has the key cannot report as the agent.
  return {std::string(kJobPrefix) + ToUpper(attempt.ToString()) +
              (host == 0 ? "" : "H" + std::to_string(host)),
          Sha256Hex("aws access key of " + std::string(token)).substr(0, kSecretSize)};
}

std::optional<AttemptId> AttemptOfKey(std::string_view key_id) {
  if (!StartsWith(key_id, kJobPrefix)) return std::nullopt;
  auto id = key_id.substr(kJobPrefix.size());
  if (const auto host = HostOfKey(key_id); host != 0) {
    const auto suffix = "H" + std::to_string(host);
    if (!id.ends_with(suffix)) return std::nullopt;
    id.remove_suffix(suffix.size());
  }
  return AttemptId::Parse(id);
}

uint32_t HostOfKey(std::string_view key_id) {
  constexpr size_t kWhole = kJobPrefix.size() + 26;  // of an id
  uint32_t host = 0;
  if (key_id.size() > kWhole + 1 && key_id[kWhole] == 'H') {
    std::from_chars(key_id.data() + kWhole + 1, key_id.data() + key_id.size(), host);
  }
  return host;
}

Status WriteAwsOverlay(const std::string& dir, const std::string& url) {
  for (const auto& service : kServices) {
    const std::string folder = dir + "/models/" + service.folder + "/" + service.version;
    ATHANOR_CHECK_OK(MakeDirs(folder));
    ATHANOR_CHECK_OK(KeepFile(folder + "/endpoint-rule-set-1.json", RuleSet(service.folder, url)));
  }
  return KeepFile(dir + "/sagemaker.yaml",
                  "SchemaVersion: '1.0'\nSageMaker:\n  PythonSDK:\n    Modules:\n"
                  "      TelemetryOptOut: true\n");
}

std::map<std::string, std::string> AwsVariables(const std::string& url, const std::string& dir,
                                                const AwsKey& key) {
  std::map<std::string, std::string> all = {
      {"AWS_ACCESS_KEY_ID", key.id},
      {"AWS_SECRET_ACCESS_KEY", key.secret},
      {"AWS_REGION", kAwsRegion},
      {"AWS_DEFAULT_REGION", kAwsRegion},
      {"AWS_ENDPOINT_URL", url},
      {"S3_ENDPOINT_URL", url},
      {"S3_ENDPOINT", url},
      {"AWS_EC2_METADATA_DISABLED", "true"},
      {"AWS_DATA_PATH", dir + "/models"},
      {"SAGEMAKER_ADMIN_CONFIG_OVERRIDE", dir + "/sagemaker.yaml"},
  };
  for (const char* service : {"S3", "STS", "IAM", "SAGEMAKER", "SAGEMAKER_METRICS",
                              "SAGEMAKER_RUNTIME", "CLOUDWATCH", "CLOUDWATCH_LOGS"}) {
    all["AWS_ENDPOINT_URL_" + std::string(service)] = url;
  }
  return all;
}

}  // namespace athanor
