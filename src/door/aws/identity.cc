// STS and IAM: who the caller is, and the name of a role. Athanor has neither accounts nor roles;
// the answers are what SDKs need to continue.
#include "base/exec/clock.h"
#include "base/io/hash.h"
#include "base/text/text.h"
#include "door/aws/aws_front.h"
#include "door/aws/xml.h"

namespace athanor {
namespace {

// Clients look whether a role may be used for training before they ask for it.
constexpr char kTrust[] =
    R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow",)"
    R"("Principal":{"Service":"sagemaker.amazonaws.com"},"Action":"sts:AssumeRole"}]})";

constexpr std::string_view kSts = "https://sts.amazonaws.com/doc/2011-06-15/";
constexpr std::string_view kIam = "https://iam.amazonaws.com/doc/2010-05-08/";

AwsError Unknown(const AwsCall& call) {
  return {400, "InvalidAction",
          "Could not find operation " + Printable(call.operation.substr(0, 100))};
}

void Sts(const AwsCall& call) {
  if (call.operation != "GetCallerIdentity") return call.RefuseXml(Unknown(call));
  std::string user;
  for (const char c : call.identity.user()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("+=,.@_-").find(c) != std::string_view::npos;
    user += plain ? c : '-';
  }
  call.Xml(kSts, XmlElement("Arn", "arn:aws:iam::" + std::string(kAwsAccount) + ":user/" + user) +
                     XmlElement("UserId", call.identity.key.id) +
                     XmlElement("Account", kAwsAccount));
}

bool IsRoleName(std::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("+=,.@_-").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

// SDK 3 asks before it creates a job. Every role may: what a caller may is its key's scope.
void Simulate(const AwsCall& call) {
  std::string results;
  for (size_t i = 1;; ++i) {
    const std::string name = "ActionNames.member." + std::to_string(i);
    if (!call.HasParam(name)) break;
    results += "<member>" + XmlElement("EvalActionName", call.Param(name)) +
               XmlElement("EvalResourceName", "*") + XmlElement("EvalDecision", "allowed") +
               "</member>";
  }
  call.Xml(kIam, "<EvaluationResults>" + results + "</EvaluationResults>" +
                     XmlElement("IsTruncated", "false"));
}

void Iam(const AwsCall& call) {
  if (call.operation == "SimulatePrincipalPolicy") return Simulate(call);
  if (call.operation != "GetRole") return call.RefuseXml(Unknown(call));
  const std::string name = call.Param("RoleName");
  if (!IsRoleName(name)) {
    return call.RefuseXml({400, "ValidationError",
                           "The specified value for roleName is invalid. It must contain only "
                           "alphanumeric characters and/or the following: +=,.@_-"});
  }
  // Any role is there: nothing is decided by it.
  call.Xml(kIam,
           "<Role>" + XmlElement("Path", "/") + XmlElement("RoleName", name) +
               XmlElement("RoleId", "AROA" + ToUpper(Sha256Hex(name).substr(0, 17))) +
               XmlElement("Arn", "arn:aws:iam::" + std::string(kAwsAccount) + ":role/" + name) +
               XmlElement("CreateDate", "2020-01-01T00:00:00Z") +
               XmlElement("AssumeRolePolicyDocument", UrlEncode(kTrust)) +
               XmlElement("MaxSessionDuration", "3600") + "</Role>");
}

}  // namespace

void RegisterIdentityServices(AwsFront& front) {
  front.OnAction("sts", [](const AwsCall& call) { Sts(call); });
  front.OnAction("iam", [](const AwsCall& call) { Iam(call); });
}

}  // namespace athanor
