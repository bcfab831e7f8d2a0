#include "door/aws/aws_front.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/io/hash.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "door/access.h"
#include "door/aws/xml.h"
#include "door/s3/s3_door.h"
#include "link/aws_environment.h"
#include "net/aws/sigv2.h"
#include "record/keys/access_keys.h"
#include "steer/attempt_tokens.h"

namespace athanor {
namespace {

constexpr uint64_t kMostJson = 8ull << 20;

// How the three families of protocols name what is wrong with a signature.
struct FaultRow {
  SigV4Fault fault;
  AwsError s3;
  AwsError json;
  AwsError query;
};

const FaultRow& RowOf(SigV4Fault fault) {
  static const FaultRow kRows[] = {
      {SigV4Fault::kMalformed,
       {400, "AuthorizationHeaderMalformed", ""},
       {400, "IncompleteSignatureException", ""},
       {400, "IncompleteSignature", ""}},
      {SigV4Fault::kMissingDate,
       {403, "AccessDenied", ""},
       {400, "IncompleteSignatureException", ""},
       {400, "IncompleteSignature", ""}},
      {SigV4Fault::kSkewed,
       {403, "RequestTimeTooSkewed", ""},
       {400, "InvalidSignatureException", ""},
       {403, "SignatureDoesNotMatch", ""}},
      {SigV4Fault::kExpired,
       {403, "AccessDenied", ""},
       {400, "ExpiredTokenException", ""},
       {403, "ExpiredToken", ""}},
      {SigV4Fault::kUnsignedHeaders,
       {403, "AccessDenied", ""},
       {400, "InvalidSignatureException", ""},
       {403, "SignatureDoesNotMatch", ""}},
      {SigV4Fault::kMismatch,
       {403, "SignatureDoesNotMatch", ""},
       {400, "InvalidSignatureException", ""},
       {403, "SignatureDoesNotMatch", ""}},
  };
  for (const auto& row : kRows) {
    if (row.fault == fault) return row;
  }
  return kRows[0];
}

std::string HintFor(SigV4Fault fault) {
  switch (fault) {
    case SigV4Fault::kSkewed:
      return "set the clock of the client or of the server";
    case SigV4Fault::kExpired:
      return "presign the URL again";
    case SigV4Fault::kMismatch:
      return "is the secret key that of this access key? eval \"$(ath env aws)\"";
    case SigV4Fault::kMalformed:
    case SigV4Fault::kMissingDate:
    case SigV4Fault::kUnsignedHeaders:
      break;
  }
  return "sign with AWS Signature Version 4";
}

bool IsForm(const Request& head) {
  return StartsWith(ToLower(head.headers.Get("Content-Type")), "application/x-www-form-urlencoded");
}

// What a JSON client is answered with: what it sent, or 1.1.
std::string JsonTypeOf(const Request& head) {
  const auto sent = head.headers.Get("Content-Type");
  for (const std::string_view known : {"application/x-amz-json-1.0", "application/json"}) {
    if (StartsWith(sent, known)) return std::string(known);
  }
  return "application/x-amz-json-1.1";
}

Response JsonRefusal(const Request& head, const AwsError& error, const std::string& request_id) {
  Response response{error.status, {}, ""};
  response.body = DumpJson(Json{{"__type", error.code}, {"message", error.message}});
  response.headers.Add("Content-Type", JsonTypeOf(head));
  response.headers.Add("x-amzn-RequestId", request_id);
  response.headers.Add("x-amzn-ErrorType", error.code);
  if (head.headers.Has("x-amzn-query-mode")) {
    response.headers.Add("x-amzn-query-error",
                         error.code + (error.status < 500 ? ";Sender" : ";Receiver"));
  }
  return response;
}

Response XmlRefusal(const AwsError& error, const std::string& request_id) {
  Response response{error.status, {}, ""};
  response.body = "<ErrorResponse><Error>" +
                  XmlElement("Type", error.status < 500 ? "Sender" : "Receiver") +
                  XmlElement("Code", error.code) + XmlElement("Message", error.message) +
                  "</Error>" + XmlElement("RequestId", request_id) + "</ErrorResponse>";
  response.headers.Add("Content-Type", "text/xml");
  response.headers.Add("x-amzn-RequestId", request_id);
  return response;
}

bool IsSigned(const Request& head) {
  return HasSigV4(head) || HasSigV2(head) || HasSigV2Header(head);
}

// The service in "Credential=KEY/20261116/us-west-2/s3/aws4_request"; empty: cannot be read.
std::string SignedService(const Request& head) {
  // Called several times for every request: those without a signature and those of S3 are
  // recognised without parsing everything. It only decides who answers; Identify reads the claim
  // itself.
  if (!HasSigV4(head)) return {};
  constexpr std::string_view kS3 = "/s3/aws4_request";
  if (head.headers.Get("Authorization").find(kS3) != std::string_view::npos) return "s3";
  for (const auto& [name, value] : head.query) {
    if (name == "X-Amz-Credential" && EndsWith(value, kS3)) return "s3";
  }
  auto claim = ParseSigV4(head);
  return claim ? claim->service : std::string();
}

}  // namespace

std::string NewAwsRequestId() { return ToUpper(RandomHex(8)); }

void AwsCall::Json(int status, std::string body) const {
  Response response{status, {}, std::move(body)};
  response.headers.Add("Content-Type", JsonTypeOf(request));
  response.headers.Add("x-amzn-RequestId", request_id);
  responder.Send(std::move(response));
}

void AwsCall::RefuseJson(const AwsError& error) const {
  responder.Send(JsonRefusal(request, error, request_id));
}

void AwsCall::Xml(std::string_view xmlns, std::string_view result) const {
  Response response;
  response.body = "<" + operation + "Response xmlns=\"" + std::string(xmlns) + "\"><" + operation +
                  "Result>" + std::string(result) + "</" + operation + "Result><ResponseMetadata>" +
                  XmlElement("RequestId", request_id) + "</ResponseMetadata></" + operation +
                  "Response>";
  response.headers.Add("Content-Type", "text/xml");
  response.headers.Add("x-amzn-RequestId", request_id);
  responder.Send(std::move(response));
}

void AwsCall::RefuseXml(const AwsError& error) const {
  responder.Send(XmlRefusal(error, request_id));
}

void AwsCall::Refuse(const AwsError& error) const {
  if (form.empty()) return RefuseJson(error);
  RefuseXml(error);
}

bool AwsCall::RefusedBelow(Scope need) const {
  if (Covers(identity.key.scope, need)) return false;
  const std::string code = form.empty() ? "AccessDeniedException" : "AccessDenied";
  Refuse({form.empty() ? 400 : 403, code,
          "an access key of scope " + std::string(NameOf(identity.key.scope)) +
              " may not do this; ath token create --aws --scope " + std::string(NameOf(need))});
  return true;
}

Caller AwsCall::caller() const {
  return {"token:" + identity.user(), identity.key.scope, std::nullopt};
}

bool AwsCall::HasParam(std::string_view name) const {
  return std::any_of(form.begin(), form.end(),
                     [&](const auto& pair) { return pair.first == name; });
}

std::string AwsCall::Param(std::string_view name) const {
  for (const auto& [key, value] : form) {
    if (key == name) return value;
  }
  return {};
}

AwsFront::AwsFront(DoorContext& context)
    : context_(context), s3_(std::make_unique<S3Door>(context)) {
  RegisterIdentityServices(*this);
}
AwsFront::~AwsFront() = default;

void AwsFront::OnTarget(std::string prefix, Handler handler) {
  targets_[std::move(prefix)] = std::move(handler);
}

void AwsFront::OnAction(std::string service, Handler handler) {
  actions_[std::move(service)] = std::move(handler);
}

AwsFront::Protocol AwsFront::ProtocolOf(const Request& head) {
  if (head.headers.Has("X-Amz-Target")) return Protocol::kJson;
  if (head.raw_path == "/" && ((head.method == "POST" && IsForm(head)) || head.Query("Action"))) {
    return Protocol::kQuery;
  }
  const std::string service = SignedService(head);
  return service.empty() || service == "s3" ? Protocol::kS3 : Protocol::kRest;
}

bool AwsFront::IsSigned(const Request& head) { return athanor::IsSigned(head); }

bool AwsFront::Takes(const Request& head) const {
  return IsSigned(head) || ProtocolOf(head) != Protocol::kS3;
}

Response AwsFront::Refusal(Protocol protocol, const Request& head, const AwsError& error) const {
  const std::string id = NewAwsRequestId();
  switch (protocol) {
    case Protocol::kS3:
      return S3Refusal(head, error, id);
    case Protocol::kQuery:
      return XmlRefusal(error, id);
    case Protocol::kJson:
    case Protocol::kRest:
      break;
  }
  return JsonRefusal(head, error, id);
}

// A key of `ath token create --aws`, or that of a live attempt's script.
Result<AccessKeys::Key> AwsFront::FindKey(const std::string& id, WallTime now) const {
  const auto attempt = AttemptOfKey(id);
  if (!attempt) return context_.access_keys.Find(id, now);
  const auto job = JobNowIn(context_, *attempt);
  if (!job) {
    return Fail(ErrorCode::kDenied, "the access key was a job's, and that attempt is over",
                "eval \"$(ath env aws)\"");
  }
  AccessKeys::Key key;
  const auto host = HostOfKey(id);
  key.secret =
      KeyOfAttempt(*attempt, IngestToken(context_.ingest_key, *attempt, host), host).secret;
  key.info.id = id;
  key.info.note = "job-" + job->ToString();
  key.info.scope = Scope::kSubmit;
  key.info.bound = attempt->ToString();
  return key;
}

tl::expected<AwsIdentity, AwsError> AwsFront::Identify(Protocol protocol, const Request& head,
                                                       std::string_view body_sha256) const {
  const auto refuse = [&](const AwsError& s3, const AwsError& json, const AwsError& query,
                          std::string message) {
    AwsError error = protocol == Protocol::kS3 ? s3 : protocol == Protocol::kQuery ? query : json;
    error.message = std::move(message);
    return tl::unexpected(std::move(error));
  };
  const auto faulty = [&](const SigV4Error& error) {
    const auto& row = RowOf(error.fault);
    return refuse(row.s3, row.json, row.query, error.what + "; " + HintFor(error.fault));
  };
  if (const auto origin = CheckOrigin(context_, head); !origin.ok()) {
    return refuse({403, "AccessDenied", ""}, {400, "AccessDeniedException", ""},
                  {403, "AccessDenied", ""}, origin.error().what + "; " + origin.error().hint);
  }
  if (HasSigV2Header(head)) {
    return refuse({400, "InvalidRequest", ""}, {400, "IncompleteSignatureException", ""},
                  {400, "IncompleteSignature", ""},
                  "The authorization mechanism you have provided is not supported. Please use "
                  "AWS4-HMAC-SHA256.");
  }
  const bool second = protocol == Protocol::kS3 && !HasSigV4(head) && HasSigV2(head);
  if (!HasSigV4(head) && !second) {
    return refuse({403, "AccessDenied", ""}, {400, "MissingAuthenticationTokenException", ""},
                  {403, "MissingAuthenticationToken", ""},
                  "the request is not signed; eval \"$(ath env aws)\" sets keys for this server");
  }
  AwsIdentity identity;
  auto claim = second ? ParseSigV2(head, kAwsRegion) : ParseSigV4(head);
  if (!claim) return faulty(claim.error());
  identity.claim = std::move(*claim);
  if (!identity.claim.token.empty()) {
    return refuse({400, "InvalidToken", ""}, {400, "UnrecognizedClientException", ""},
                  {403, "InvalidClientTokenId", ""},
                  "this server makes no session tokens; unset AWS_SESSION_TOKEN");
  }
  if ((protocol == Protocol::kS3) != (identity.claim.service == "s3")) {
    return refuse(
        {400, "AuthorizationHeaderMalformed", ""}, {400, "InvalidSignatureException", ""},
        {403, "SignatureDoesNotMatch", ""},
        "the request is signed for the service " + Printable(identity.claim.service.substr(0, 40)));
  }
  if (protocol == Protocol::kS3 && identity.claim.payload_mode == SigV4Payload::kNone) {
    return refuse({400, "InvalidRequest", ""}, {}, {},
                  "Missing required header for this request: x-amz-content-sha256");
  }
  const WallTime now = context_.clock.Wall();
  // From other machines only scripts of jobs are served.
  Result<AccessKeys::Key> key = Fail(ErrorCode::kNotFound, "not the key of a job");
  if (!head.peer.elsewhere || AttemptOfKey(identity.claim.key_id)) {
    key = FindKey(identity.claim.key_id, now);
  }
  if (!key && key.error().code == ErrorCode::kDenied) {
    return refuse({400, "ExpiredToken", ""}, {400, "ExpiredTokenException", ""},
                  {403, "ExpiredToken", ""}, key.error().what + "; " + key.error().hint);
  }
  if (!key && key.error().code == ErrorCode::kNotFound) {
    return refuse({403, "InvalidAccessKeyId", ""}, {400, "UnrecognizedClientException", ""},
                  {403, "InvalidClientTokenId", ""},
                  "this server does not know the access key; eval \"$(ath env aws)\", or "
                  "ath token create --aws");
  }
  if (!key) {
    return refuse({500, "InternalError", ""}, {500, "InternalFailure", ""},
                  {500, "InternalFailure", ""}, key.error().what);
  }
  const auto right = second ? VerifySigV2(identity.claim, head, key->secret, now)
                            : VerifySigV4(identity.claim, head, key->secret, now, body_sha256);
  if (!right) return faulty(right.error());
  // Only S3 has bodies that the signature leaves out; elsewhere a digest that is given must
  // be the body's.
  if (protocol != Protocol::kS3 && !identity.claim.payload.empty() &&
      identity.claim.payload != body_sha256) {
    return faulty({SigV4Fault::kMismatch, "the body is not the one that was signed"});
  }
  // Whole bodies are covered by the signature that was just verified.
  if (identity.claim.payload_mode >= SigV4Payload::kSignedChunks) {
    identity.signing_key = SigV4SigningKey(key->secret, identity.claim);
  }
  identity.key = std::move(key->info);
  return identity;
}

BodyPolicy AwsFront::PolicyFor(const Request& head) {
  BodyPolicy policy;
  const Protocol protocol = ProtocolOf(head);
  if (protocol != Protocol::kS3) {
    // The signature covers the body, so it is verified when that has come.
    policy.max_bytes = kMostJson;
    if (!IsSigned(head)) {
      policy.refuse = Refusal(protocol, head, Identify(protocol, head, {}).error());
    }
    return policy;
  }
  // Without a body there is nothing to take before Handle verifies.
  const auto length = head.headers.Get("Content-Length");
  const bool empty = (length.empty() || length == "0") && !head.headers.Has("Transfer-Encoding");
  if (empty && head.method != "PUT") return policy;
  auto identity = Identify(protocol, head, {});
  if (!identity) {
    policy.refuse = Refusal(protocol, head, identity.error());
    return policy;
  }
  return s3_->PolicyFor(head, std::move(*identity));
}

void AwsFront::Handle(Request request, Responder responder) {
  const Protocol protocol = ProtocolOf(request);
  if (protocol == Protocol::kS3 && request.body_sink) {
    // Verified when its head was in.
    return s3_->HandleUpload(std::move(request), std::move(responder));
  }
  const std::string body_sha256 = Sha256Hex(request.body);
  auto identity = Identify(protocol, request, body_sha256);
  if (!identity) return responder.Send(Refusal(protocol, request, identity.error()));
  AwsCall call{
      std::move(request), std::move(responder), std::move(*identity), {}, NewAwsRequestId(), {}};
  switch (protocol) {
    case Protocol::kJson:
      return HandleJson(std::move(call));
    case Protocol::kQuery:
      return HandleQuery(std::move(call));
    case Protocol::kRest:
      return HandleRest(std::move(call));
    case Protocol::kS3:
      return s3_->Handle(std::move(call), body_sha256);
  }
}

void AwsFront::HandleJson(AwsCall call) const {
  const std::string target(call.request.headers.Get("X-Amz-Target"));
  const size_t dot = target.find('.');
  call.operation = dot == std::string::npos ? target : target.substr(dot + 1);
  const auto handler = targets_.find(target.substr(0, dot));
  if (handler != targets_.end()) return handler->second(std::move(call));
  call.RefuseJson({400, "UnknownOperationException",
                   "no operation " + Printable(target.substr(0, 100)) + " here"});
}

void AwsFront::HandleQuery(AwsCall call) const {
  auto form = ParseQuery(call.request.body);
  if (form) call.form = std::move(*form);
  for (const auto& pair : call.request.query) call.form.push_back(pair);
  call.operation = call.Param("Action");
  const auto handler = actions_.find(call.identity.claim.service);
  if (handler != actions_.end()) return handler->second(std::move(call));
  call.RefuseXml({400, "InvalidAction",
                  "Could not find operation " + Printable(call.operation.substr(0, 100)) +
                      " of service " + Printable(call.identity.claim.service.substr(0, 40))});
}

void AwsFront::HandleRest(AwsCall call) const {
  call.operation = call.request.method + " " + call.request.raw_path;
  call.RefuseJson({404, "UnknownOperationException",
                   "no operation " + Printable(call.operation.substr(0, 100)) + " of service " +
                       Printable(call.identity.claim.service.substr(0, 40)) + " here"});
}

}  // namespace athanor
