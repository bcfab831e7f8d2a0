#include "door/s3/s3_upload.h"

#include <charconv>

#include "base/text/text.h"

namespace athanor {
namespace {

// The kind that will be asked for: a header, an announced trailer, or a wish of the SDK.
std::optional<ChecksumKind> PlannedChecksum(const Request& head) {
  if (const auto given = ChecksumIn(head.headers)) return given->kind;
  constexpr std::string_view kPrefix = "x-amz-checksum-";
  for (const auto& part : Split(head.headers.Get("x-amz-trailer"), ',')) {
    const std::string name = ToLower(Trim(part));
    if (StartsWith(name, kPrefix)) {
      if (const auto kind = ChecksumNamed(name.substr(kPrefix.size()))) return kind;
    }
  }
  return ChecksumNamed(head.headers.Get("x-amz-sdk-checksum-algorithm"));
}

bool IsChunked(SigV4Payload mode) {
  return mode == SigV4Payload::kSignedChunks || mode == SigV4Payload::kSignedChunksTrailer ||
         mode == SigV4Payload::kUnsignedChunksTrailer;
}

}  // namespace

S3Upload::S3Upload(AwsIdentity identity) : identity_(std::move(identity)) {
  const auto& claim = identity_.claim;
  if (!IsChunked(claim.payload_mode)) return;
  decoder_.emplace(claim.payload_mode, AwsChunkedDecoder::Seal{identity_.signing_key, claim.time,
                                                               claim.Scope(), claim.signature});
}

tl::expected<std::shared_ptr<S3Upload>, AwsError> S3Upload::Begin(const Request& head,
                                                                  AwsIdentity identity,
                                                                  ObjectStore& store) {
  std::shared_ptr<S3Upload> upload(new S3Upload(std::move(identity)));
  DigestPlan plan;
  plan.sha256 = upload->identity_.claim.payload_mode == SigV4Payload::kSha256;
  plan.checksum = upload->planned_ = PlannedChecksum(head);
  auto writer = store.NewObject(plan);
  if (!writer) return tl::unexpected(S3ErrorOf(writer.error()));
  upload->writer_ = std::move(*writer);
  return upload;
}

void S3Upload::Take(std::string_view bytes) {
  if (!failed_.ok()) return;
  if (!decoder_) {
    failed_ = writer_->Write(bytes);
    return;
  }
  Status written;
  const Status fed = decoder_->Feed(bytes, [&](std::string_view piece) {
    if (written.ok()) written = writer_->Write(piece);
  });
  failed_ = written.ok() ? fed : written;
}

tl::expected<S3Upload::Checked, AwsError> S3Upload::Check(const S3Call& call) {
  const auto refuse = [](int status, const char* code, std::string message) {
    return tl::unexpected(AwsError{status, code, std::move(message)});
  };
  if (failed_.ok() && decoder_) failed_ = decoder_->Finish();
  if (!failed_.ok() && failed_.error().code == ErrorCode::kDenied) {
    return refuse(403, "SignatureDoesNotMatch", failed_.error().what);
  }
  if (!failed_.ok() && failed_.error().code == ErrorCode::kInvalid) {
    return refuse(400, "IncompleteBody", failed_.error().what);
  }
  if (!failed_.ok()) return tl::unexpected(S3ErrorOf(failed_.error()));
  const auto promised = call.Header("x-amz-decoded-content-length");
  if (decoder_ && promised != std::to_string(writer_->size())) {
    return refuse(400, "IncompleteBody",
                  "the body has " + std::to_string(writer_->size()) + " bytes, not the " +
                      Printable(promised) + " of x-amz-decoded-content-length");
  }
  auto digests = writer_->Finish();
  if (!digests) return tl::unexpected(S3ErrorOf(digests.error()));
  if (!digests->sha256.empty() && digests->sha256 != identity_.claim.payload) {
    return refuse(400, "XAmzContentSHA256Mismatch",
                  "The provided 'x-amz-content-sha256' header does not match what was computed.");
  }
  if (call.request.headers.Has("Content-MD5")) {
    const auto given = FromBase64(call.Header("Content-MD5"));
    if (!given || given->size() != digests->md5.size()) {
      return refuse(400, "InvalidDigest", "The Content-MD5 you specified is not valid.");
    }
    if (*given != digests->md5) {
      return refuse(400, "BadDigest",
                    "The Content-MD5 you specified did not match what we received.");
    }
  }
  Checked checked{std::move(*digests), planned_};
  auto given = ChecksumIn(call.request.headers);
  if (!given && decoder_) given = ChecksumIn(decoder_->trailers());
  if (given) {
    const std::string name(NameOf(given->kind));
    if (given->kind != planned_) {
      return refuse(400, "InvalidRequest", "the checksum is not of the kind that was announced");
    }
    const auto raw = FromBase64(given->value);
    if (!raw || raw->size() != checked.digests.checksum.size()) {
      return refuse(400, "InvalidRequest",
                    "Value for " + ChecksumHeader(given->kind) + " header is invalid.");
    }
    if (*raw != checked.digests.checksum) {
      return refuse(400, "BadDigest",
                    "The " + name + " you specified did not match the calculated checksum.");
    }
  }
  return checked;
}

void S3Upload::Finish(const S3Call& call) {
  auto checked = Check(call);
  if (!checked) return call.Refuse(checked.error());
  if (call.Asks("uploadId")) return StorePart(call, *checked);
  StoreObject(call, *checked);
}

void S3Upload::StoreObject(const S3Call& call, const Checked& checked) {
  auto meta = MetaOf(call.request);
  if (!meta) return call.Refuse(meta.error());
  auto condition = ConditionOf(call.request);
  if (!condition) return call.Refuse(condition.error());
  auto made = call.store.Put(call.bucket, call.key, std::move(writer_), checked.digests,
                             std::move(*meta), checked.checksum, *condition);
  if (!made) return call.Refuse(made.error());
  Response response = call.Head(200);
  response.headers.Add("ETag", "\"" + made->etag + "\"");
  if (made->checksum) {
    response.headers.Add(ChecksumHeader(made->checksum->kind), made->checksum->value);
    response.headers.Add("x-amz-checksum-type", "FULL_OBJECT");
  }
  call.Send(std::move(response));
}

void S3Upload::StorePart(const S3Call& call, const Checked& checked) {
  const std::string text = call.Query("partNumber");
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) number = 0;
  auto part = call.store.uploads().Put(call.bucket, call.key, call.Query("uploadId"), number,
                                       std::move(writer_), checked.digests);
  if (!part) return call.Refuse(part.error());
  Response response = call.Head(200);
  response.headers.Add("ETag", "\"" + part->etag + "\"");
  if (checked.checksum) response.headers.Add(ChecksumHeader(*checked.checksum), part->checksum);
  call.Send(std::move(response));
}

}  // namespace athanor
