// The entry of all AWS services on the one port. It decides which service a request is for,
// verifies who signed it, and calls that service's handler; refusals have the form of the service's
// protocol. The order: X-Amz-Target (JSON), otherwise a form with Action (Query XML), otherwise by
// the signature: for "s3" the S3 door, for another service its REST handler. Other requests are not
// handled here.
//
//   front.OnTarget("SageMaker", [&](AwsCall call) {     // X-Amz-Target: SageMaker.ListTags
//     if (call.RefusedBelow(Scope::kSubmit)) return;
//     call.Json(200, Answer(call.operation, call.request.body));
//   });
//   front.OnAction("monitoring", …);                    // Action=GetMetricStatistics&…
//
// A handler gets a completely verified request, including the body. It answers through the AwsCall,
// at once or later, from any thread; a call that is dropped without an answer is a 500.
//
// Threads: the loop's, like every door; slow work belongs on context.readers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "door/access.h"
#include "door/context.h"
#include "net/aws/sigv4.h"
#include "net/http/http_server.h"
#include "record/keys/access_keys.h"
#include "record/keys/token_store.h"

namespace athanor {

class S3Door;

inline constexpr char kAwsAccount[] = "000000000000";

// Who signed a request, verified.
struct AwsIdentity {
  SigV4Claim claim;
  TokenInfo key;
  std::string signing_key;  // of the claim's day, region and service; only where chunks are signed
  std::string user() const { return key.note.empty() ? key.id : key.note; }
};

// A refusal with AWS's code and message.
struct AwsError {
  int status = 400;
  std::string code;  // "NoSuchKey"
  std::string message;
};

// One verified call of a JSON, Query or REST service. It can be copied; copies answer the same
// request, and the first answer counts.
struct AwsCall {
  Request request;  // body in request.body, the client's name in headers "User-Agent"
  Responder responder;
  AwsIdentity identity;
  std::string
      operation;  // "CreateTrainingJob", "GetCallerIdentity"; of REST "PUT /BatchPutMetrics"
  std::string request_id;
  std::vector<std::pair<std::string, std::string>> form;  // of a Query call

  std::string_view UserAgent() const { return request.headers.Get("User-Agent"); }
  // The value of a Query parameter; empty: none. Has tells "none" and "" apart.
  std::string Param(std::string_view name) const;
  bool HasParam(std::string_view name) const;
  // For records, as the native doors write it, and what the key may do.
  Caller caller() const;

  // JSON and REST protocols. A refusal has its type in the body ("__type", where botocore
  // looks) and in the headers; to a Query client on JSON it has the Query code as well.
  void Json(int status, std::string body) const;
  void RefuseJson(const AwsError& error) const;
  // Query protocols. `result` is the inner XML of <OperationResult>.
  void Xml(std::string_view xmlns, std::string_view result) const;
  void RefuseXml(const AwsError& error) const;
  // In the protocol of the call.
  void Refuse(const AwsError& error) const;
  // Whether the key's scope does not cover `need`; then the call has been refused.
  bool RefusedBelow(Scope need) const;
};

class AwsFront {
 public:
  using Handler = std::function<void(AwsCall)>;

  explicit AwsFront(DoorContext& context);
  ~AwsFront();

  // `prefix`: the part before the dot of X-Amz-Target, "SageMaker".
  void OnTarget(std::string prefix, Handler handler);
  // `service`: as the signature names it, "sts".
  void OnAction(std::string service, Handler handler);

  bool Takes(const Request& head) const;
  static bool IsSigned(const Request& head);  // which says nothing about by whom
  BodyPolicy PolicyFor(const Request& head);
  void Handle(Request request, Responder responder);

 private:
  enum class Protocol { kJson, kQuery, kRest, kS3 };
  static Protocol ProtocolOf(const Request& head);
  tl::expected<AwsIdentity, AwsError> Identify(Protocol protocol, const Request& head,
                                               std::string_view body_sha256) const;
  Result<AccessKeys::Key> FindKey(const std::string& id, WallTime now) const;
  Response Refusal(Protocol protocol, const Request& head, const AwsError& error) const;
  void HandleJson(AwsCall call) const;
  void HandleQuery(AwsCall call) const;
  void HandleRest(AwsCall call) const;

  DoorContext& context_;
  std::unique_ptr<S3Door> s3_;
  std::map<std::string, Handler, std::less<>> targets_;
  std::map<std::string, Handler, std::less<>> actions_;
};

std::string NewAwsRequestId();
// STS and IAM, as far as SDKs use them to find out who they are.
void RegisterIdentityServices(AwsFront& front);

}  // namespace athanor
