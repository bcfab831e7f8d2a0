#include "door/s3/s3_door.h"

#include <memory>

#include "base/text/text.h"
#include "door/s3/s3_call.h"
#include "door/s3/s3_upload.h"
#include "net/aws/aws_chunked.h"

namespace athanor {
namespace {

constexpr uint64_t kMostDocument = 16ull << 20;  // 10,000 parts of a Complete fit
constexpr uint64_t kMostObject = 5ull << 40;

enum class Place { kService, kBucket, kObject };

// The first row that fits. `param`: the query must have it; empty: nothing of the kind.
struct Operation {
  std::string_view method;
  Place place;
  std::string_view param;
  Scope need;
  void (*run)(const S3Call&);  // null: the body goes through an S3Upload
};

constexpr Operation kOperations[] = {
    {"GET", Place::kService, "", Scope::kRead, ListBuckets},

    {"GET", Place::kBucket, "location", Scope::kRead, BucketLocation},
    {"GET", Place::kBucket, "versioning", Scope::kRead, BucketVersioning},
    {"GET", Place::kBucket, "acl", Scope::kRead, GetAcl},
    {"GET", Place::kBucket, "uploads", Scope::kRead, ListUploads},
    {"GET", Place::kBucket, "policy", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "cors", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "lifecycle", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "tagging", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "encryption", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "website", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "replication", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "object-lock", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "publicAccessBlock", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "ownershipControls", Scope::kRead, NoBucketConfiguration},
    {"GET", Place::kBucket, "", Scope::kRead, ListObjects},
    {"HEAD", Place::kBucket, "", Scope::kRead, HeadBucket},
    {"PUT", Place::kBucket, "acl", Scope::kSubmit, PutAcl},
    {"PUT", Place::kBucket, "", Scope::kSubmit, CreateBucket},
    {"DELETE", Place::kBucket, "", Scope::kSubmit, DeleteBucket},
    {"POST", Place::kBucket, "delete", Scope::kSubmit, DeleteObjects},

    {"GET", Place::kObject, "tagging", Scope::kRead, GetTags},
    {"GET", Place::kObject, "acl", Scope::kRead, GetAcl},
    {"GET", Place::kObject, "uploadId", Scope::kRead, ListParts},
    {"GET", Place::kObject, "", Scope::kRead, GetObject},
    {"HEAD", Place::kObject, "", Scope::kRead, GetObject},
    {"PUT", Place::kObject, "tagging", Scope::kSubmit, PutTags},
    {"PUT", Place::kObject, "acl", Scope::kSubmit, PutAcl},
    {"PUT", Place::kObject, "uploadId", Scope::kSubmit, nullptr},
    {"PUT", Place::kObject, "", Scope::kSubmit, nullptr},
    {"DELETE", Place::kObject, "tagging", Scope::kSubmit, DeleteTags},
    {"DELETE", Place::kObject, "uploadId", Scope::kSubmit, AbortUpload},
    {"DELETE", Place::kObject, "", Scope::kSubmit, DeleteObject},
    {"POST", Place::kObject, "uploads", Scope::kSubmit, BeginUpload},
    {"POST", Place::kObject, "uploadId", Scope::kSubmit, CompleteUpload},
};

// Sub-resources that exist elsewhere: to serve them as if they were not named would do
// something else than was asked for.
constexpr std::string_view kNotHere[] = {
    "accelerate",
    "analytics",
    "attributes",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "logging",
    "metrics",
    "notification",
    "policyStatus",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "torrent",
    "versions",
    "policy",
    "cors",
    "lifecycle",
    "encryption",
    "website",
    "replication",
    "object-lock",
    "publicAccessBlock",
    "ownershipControls",
    "versioning",
    "renameObject",
    "session",
    "tagging",
    "acl",
};

struct Chosen {
  S3Path path;
  const Operation* operation = nullptr;
};

tl::expected<Chosen, AwsError> Choose(const Request& head) {
  const auto refuse = [](int status, const char* code, std::string message) {
    return tl::unexpected(AwsError{status, code, std::move(message)});
  };
  auto path = SplitS3Path(head.raw_path);
  if (!path) return refuse(400, "InvalidURI", "Couldn't parse the specified URI.");
  const Place place = path->bucket.empty() ? Place::kService
                      : path->key.empty()  ? Place::kBucket
                                           : Place::kObject;
  if (path->bucket.empty() && !path->key.empty()) {
    return refuse(400, kInvalidBucketName, "the path begins with an empty bucket name");
  }
  const auto version = head.Query("versionId");
  if (version && !version->empty() && *version != "null") {
    return refuse(404, "NoSuchVersion", "this server keeps no versions");
  }
  if (const auto refused = RefuseUnsupported(head)) return tl::unexpected(*refused);
  for (const auto& row : kOperations) {
    if (row.method != head.method || row.place != place) continue;
    if (!row.param.empty() && !head.Query(row.param)) continue;
    if (row.param.empty()) {
      for (const auto name : kNotHere) {
        if (head.Query(name)) {
          return refuse(501, "NotImplemented",
                        head.method + " with ?" + std::string(name) +
                            " asks for something that this server does not do");
        }
      }
    }
    return Chosen{std::move(*path), &row};
  }
  return refuse(405, "MethodNotAllowed",
                "The specified method is not allowed against this resource.");
}

std::optional<AwsError> CheckScope(const AwsIdentity& identity, const Operation& operation) {
  if (Covers(identity.key.scope, operation.need)) return std::nullopt;
  return AwsError{403, "AccessDenied",
                  "an access key of scope " + std::string(NameOf(identity.key.scope)) +
                      " may not do this; ath token create --aws --scope " +
                      std::string(NameOf(operation.need))};
}

// A small body that came in pieces, whole.
tl::expected<std::string, AwsError> Decoded(const AwsIdentity& identity, const Request& request) {
  const auto& claim = identity.claim;
  AwsChunkedDecoder decoder(claim.payload_mode,
                            {identity.signing_key, claim.time, claim.Scope(), claim.signature});
  std::string body;
  Status status = decoder.Feed(request.body, [&](std::string_view piece) { body += piece; });
  if (status.ok()) status = decoder.Finish();
  if (status.ok()) return body;
  const bool denied = status.error().code == ErrorCode::kDenied;
  return tl::unexpected(AwsError{denied ? 403 : 400,
                                 denied ? "SignatureDoesNotMatch" : "IncompleteBody",
                                 status.error().what});
}

// Digests of a document that the client sent along.
std::optional<AwsError> CheckDocument(const Request& request, const Operation& operation) {
  if (request.headers.Has("Content-MD5") &&
      FromBase64(request.headers.Get("Content-MD5")) != Md5(request.body)) {
    return AwsError{400, "BadDigest",
                    "The Content-MD5 you specified did not match what we received."};
  }
  // With CompleteUpload the checksum is that of the object.
  if (operation.run == CompleteUpload) return std::nullopt;
  const auto given = ChecksumIn(request.headers);
  if (given && FromBase64(given->value) != Checksum(given->kind, request.body)) {
    return AwsError{400, "BadDigest",
                    "The " + std::string(NameOf(given->kind)) +
                        " you specified did not match the calculated checksum."};
  }
  return std::nullopt;
}

bool IsCopy(const Request& head) { return head.headers.Has("x-amz-copy-source"); }

}  // namespace

BodyPolicy S3Door::PolicyFor(const Request& head, AwsIdentity identity) {
  BodyPolicy policy;
  policy.max_bytes = kMostDocument;
  const auto refuse = [&](const AwsError& error) {
    policy.refuse = S3Refusal(head, error, NewAwsRequestId());
    return std::move(policy);
  };
  const auto chosen = Choose(head);
  if (!chosen) return refuse(chosen.error());
  if (const auto refused = CheckScope(identity, *chosen->operation)) return refuse(*refused);
  if (chosen->operation->run || IsCopy(head)) return policy;
  // What is known to be in vain is not waited for.
  if (auto good = CheckObjectKey(chosen->path.key); !good.ok()) {
    return refuse(S3ErrorOf(good.error()));
  }
  if (auto bucket = context_.objects.Bucket(chosen->path.bucket); !bucket) {
    return refuse(S3ErrorOf(bucket.error()));
  }
  auto upload = S3Upload::Begin(head, std::move(identity), context_.objects);
  if (!upload) return refuse(upload.error());
  policy.max_bytes = kMostObject;
  policy.sink = std::move(*upload);
  return policy;
}

void S3Door::HandleUpload(Request request, Responder responder) {
  const auto upload = std::static_pointer_cast<S3Upload>(request.body_sink);
  auto path = SplitS3Path(request.raw_path);
  auto call = std::make_shared<S3Call>(
      S3Call{std::move(request), std::move(responder), upload->identity(), NewAwsRequestId(),
             std::move(path->bucket), std::move(path->key), context_.objects});
  call->request.body_sink.reset();
  const bool taken = context_.transfers.Submit([call, upload] { upload->Finish(*call); });
  if (!taken) call->Refuse(AwsError{503, "ServiceUnavailable", "the server is stopping"});
}

void S3Door::Handle(AwsCall aws, std::string_view body_sha256) {
  auto chosen = Choose(aws.request);
  auto call = std::make_shared<S3Call>(S3Call{std::move(aws.request),
                                              std::move(aws.responder),
                                              std::move(aws.identity),
                                              std::move(aws.request_id),
                                              {},
                                              {},
                                              context_.objects});
  if (!chosen) return call->Refuse(chosen.error());
  if (const auto refused = CheckScope(call->identity, *chosen->operation)) {
    return call->Refuse(*refused);
  }
  const auto& claim = call->identity.claim;
  if (claim.payload_mode == SigV4Payload::kSha256 && claim.payload != body_sha256) {
    return call->Refuse(AwsError{400, "XAmzContentSHA256Mismatch",
                                 "The provided 'x-amz-content-sha256' header does not match what "
                                 "was computed."});
  }
  if (claim.payload_mode >= SigV4Payload::kSignedChunks) {
    auto body = Decoded(call->identity, call->request);
    if (!body) return call->Refuse(body.error());
    call->request.body = std::move(*body);
  }
  if (!call->request.body.empty()) {
    if (const auto refused = CheckDocument(call->request, *chosen->operation))
      return call->Refuse(*refused);
  }
  call->bucket = std::move(chosen->path.bucket);
  call->key = std::move(chosen->path.key);
  auto run = chosen->operation->run;
  if (!run) run = call->Asks("uploadId") ? CopyPart : CopyObject;
  const bool taken = context_.transfers.Submit([call, run] { run(*call); });
  if (!taken) call->Refuse(AwsError{503, "ServiceUnavailable", "the server is stopping"});
}

}  // namespace athanor
