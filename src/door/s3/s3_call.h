// One S3 request on its way through the door, and how it is answered. Private to this folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "door/aws/aws_front.h"
#include "record/objects/object_store.h"

namespace athanor {

struct S3Call {
  Request request;
  Responder responder;
  AwsIdentity identity;
  std::string request_id;
  std::string bucket;  // decoded; empty: none
  std::string key;     // decoded; empty: none
  ObjectStore& store;

  bool Asks(std::string_view name) const;          // the query has it, with or without a value
  std::string Query(std::string_view name) const;  // empty: none
  std::string_view Header(std::string_view name) const { return request.headers.Get(name); }

  // With the headers that every answer has.
  Response Head(int status) const;
  void Send(Response response) const { responder.Send(std::move(response)); }
  void Xml(std::string_view root, std::string_view inner) const;  // 200
  void Done(int status = 204) const { Send(Head(status)); }
  void Refuse(const AwsError& error) const;
  void Refuse(const Error& error) const;
};

// "/bucket/a%20key" -> bucket and key, decoded once.
struct S3Path {
  std::string bucket;
  std::string key;
};
std::optional<S3Path> SplitS3Path(std::string_view raw_path);

AwsError S3ErrorOf(const Error& error);
// "etag" -> etag; also W/ and without quotes.
std::string Unquoted(std::string_view etag);
std::string HttpDate(WallTime time);
std::optional<WallTime> ParseHttpDate(std::string_view text);
std::string IsoTime(WallTime time);  // 2026-11-16T00:23:01.000Z

// The headers that describe an object and are returned with it: content-type…, x-amz-meta-*,
// x-amz-tagging.
tl::expected<ObjectMeta, AwsError> MetaOf(const Request& request);
tl::expected<WriteCondition, AwsError> ConditionOf(const Request& request);
// What is not supported is refused, not ignored.
std::optional<AwsError> RefuseUnsupported(const Request& request);
// x-amz-checksum-crc32: … -> kind and value, from headers or trailers.
struct GivenChecksum {
  ChecksumKind kind;
  std::string value;  // base64, as given
};
std::optional<GivenChecksum> ChecksumIn(const Headers& headers);
std::string ChecksumHeader(ChecksumKind kind);  // "x-amz-checksum-crc32"
std::string ChecksumTag(ChecksumKind kind);     // "ChecksumCRC32"

// The operations; each answers its call. On a transfer thread.
void ListBuckets(const S3Call& call);
void CreateBucket(const S3Call& call);
void HeadBucket(const S3Call& call);
void DeleteBucket(const S3Call& call);
void BucketLocation(const S3Call& call);
void BucketVersioning(const S3Call& call);
void GetAcl(const S3Call& call);
void PutAcl(const S3Call& call);
void NoBucketConfiguration(const S3Call& call);
void ListObjects(const S3Call& call);
void ListUploads(const S3Call& call);
void GetObject(const S3Call& call);  // HEAD, too
void CopyObject(const S3Call& call);
void DeleteObject(const S3Call& call);
void DeleteObjects(const S3Call& call);
void GetTags(const S3Call& call);
void PutTags(const S3Call& call);
void DeleteTags(const S3Call& call);
void BeginUpload(const S3Call& call);
void CopyPart(const S3Call& call);
void ListParts(const S3Call& call);
void CompleteUpload(const S3Call& call);
void AbortUpload(const S3Call& call);

}  // namespace athanor
