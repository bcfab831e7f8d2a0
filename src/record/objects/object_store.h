// An ObjectStore keeps objects by (bucket, key) as S3 clients expect it: an object is complete or
// absent, a key is any UTF-8 text of 1 to 1,024 bytes, lists are in byte order, and the conditions
// of a write are decided in the same step as the write. No permissions, no versions, no HTTP.
//
// Threads: every call is safe from any thread and may block on the disk; a writer belongs to one
// thread at a time. Crash rule: a write that returned success survives kill -9 and a power cut;
// otherwise the object is absent.
//
// Errors carry in Error::id one of the names below, which S3 clients know; other errors (disk full,
// damage) have only the code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/exec/clock.h"
#include "base/io/fd.h"
#include "base/result.h"
#include "record/objects/digests.h"

namespace athanor {

inline constexpr char kNoSuchBucket[] = "NoSuchBucket";
inline constexpr char kNoSuchKey[] = "NoSuchKey";
inline constexpr char kNoSuchUpload[] = "NoSuchUpload";
inline constexpr char kBucketTaken[] = "BucketAlreadyOwnedByYou";
inline constexpr char kBucketNotEmpty[] = "BucketNotEmpty";
inline constexpr char kInvalidBucketName[] = "InvalidBucketName";
inline constexpr char kInvalidKey[] = "InvalidArgument";
inline constexpr char kKeyTooLong[] = "KeyTooLongError";
inline constexpr char kInvalidPart[] = "InvalidPart";
inline constexpr char kInvalidPartOrder[] = "InvalidPartOrder";
inline constexpr char kPartTooSmall[] = "EntityTooSmall";
inline constexpr char kPreconditionFailed[] = "PreconditionFailed";
inline constexpr char kBadDigest[] = "BadDigest";

inline constexpr uint32_t kMostParts = 10'000;
inline constexpr uint64_t kSmallestPart = 5 << 20;  // but the last one

struct BucketInfo {
  std::string name;
  WallTime created;
};

// What a writer says about an object; stored and returned as it is.
struct ObjectMeta {
  std::map<std::string, std::string> headers;  // content-type, cache-control…: lower case
  std::map<std::string, std::string> user;     // without "x-amz-meta-"
  std::map<std::string, std::string> tags;
  bool operator==(const ObjectMeta&) const = default;
};

struct ObjectChecksum {
  ChecksumKind kind = ChecksumKind::kCrc32;
  std::string value;  // base64; of parts "value-N" unless whole
  bool full_object = true;
  bool operator==(const ObjectChecksum&) const = default;
};

struct ObjectInfo {
  std::string key;
  uint64_t size = 0;
  std::string etag;  // without quotes
  WallTime modified;
  // The rest is empty in lists.
  ObjectMeta meta;
  std::optional<ObjectChecksum> checksum;
  uint32_t parts = 0;  // 0: not made of parts
};

// Conditions of a write: an ETag without quotes, or "*". All given ones must hold.
struct WriteCondition {
  std::optional<std::string> if_match;       // exists, with that ETag; absent: kNoSuchKey
  std::optional<std::string> if_none_match;  // "*": absent
};

// Bytes on their way into the store; if dropped, they leave nothing behind.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;
  // After an error only the destructor may be called.
  virtual Status Write(std::string_view bytes) = 0;
  virtual uint64_t size() const = 0;
  // Once, after the last Write: what was written. Reads the bytes again if needed.
  virtual Result<Digests> Finish() = 0;
};

// An open object: its bytes stay readable whatever happens to its key.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;
  virtual const ObjectInfo& info() const = 0;
  // Where part `number` (from 1) is: offset and size. kInvalidPart.
  virtual Result<std::pair<uint64_t, uint64_t>> Part(uint32_t number) const = 0;
  // Positions at `offset`; Next then gives the pieces of `length` bytes in order, none at
  // the end. kCorrupt: stored bytes are missing.
  virtual Status Seek(uint64_t offset, uint64_t length) = 0;
  virtual Result<std::optional<FileRange>> Next() = 0;
};

struct ListQuery {
  std::string prefix;
  std::string delimiter;  // empty: none
  std::string after;      // a key or common prefix; what follows it is listed
  size_t most = 1000;
};

struct ListPage {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> prefixes;
  bool truncated = false;
  std::string last;  // to continue: ListQuery::after
};

struct PartInfo {
  uint32_t number = 0;
  uint64_t size = 0;
  std::string etag;
  WallTime modified;
  std::string checksum;  // base64; empty: none
};

struct UploadInfo {
  std::string id;
  std::string key;
  WallTime started;
  std::optional<ChecksumKind> checksum;
  bool full_object = false;  // the checksum of the whole is that of its bytes
};

struct NamedPart {
  uint32_t number = 0;
  std::string etag;
  std::string checksum = {};  // base64, as PartInfo has it; empty: not compared
};

// What the complete upload must match, if the client knows.
struct WholeObject {
  std::optional<uint64_t> size;
  std::optional<ObjectChecksum> checksum;
};

// Objects made of parts that are sent separately. An upload is finished by one Complete: a second
// one for the same upload gives the same answer while the object exists, otherwise kNoSuchUpload.
class MultipartUploads {
 public:
  virtual ~MultipartUploads() = default;
  virtual Result<UploadInfo> Begin(std::string_view bucket, std::string_view key, ObjectMeta meta,
                                   std::optional<ChecksumKind> checksum, bool full_object) = 0;
  virtual Result<UploadInfo> Find(std::string_view bucket, std::string_view key,
                                  std::string_view upload) = 0;
  // Replaces an earlier part of that number, 1 to kMostParts. Takes a finished writer.
  virtual Result<PartInfo> Put(std::string_view bucket, std::string_view key,
                               std::string_view upload, uint32_t number,
                               std::unique_ptr<ObjectWriter> bytes, const Digests& digests) = 0;
  virtual Result<std::vector<PartInfo>> Parts(std::string_view bucket, std::string_view key,
                                              std::string_view upload, uint32_t after,
                                              size_t most) = 0;
  // Ordered by key, then id; what follows (after_key, after_id).
  virtual Result<std::vector<UploadInfo>> List(std::string_view bucket, std::string_view prefix,
                                               std::string_view after_key,
                                               std::string_view after_id, size_t most) = 0;
  // kInvalidPartOrder, kInvalidPart, kPartTooSmall, kBadDigest (not `whole`),
  // kPreconditionFailed: the upload stays.
  virtual Result<ObjectInfo> Complete(std::string_view bucket, std::string_view key,
                                      std::string_view upload, const std::vector<NamedPart>& parts,
                                      const WriteCondition& condition,
                                      const WholeObject& whole = {}) = 0;
  virtual Status Abort(std::string_view bucket, std::string_view key, std::string_view upload) = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual Status CreateBucket(std::string_view name) = 0;  // kInvalidBucketName, kBucketTaken
  virtual Status DeleteBucket(std::string_view name) = 0;  // kBucketNotEmpty; ends its uploads
  virtual Result<std::vector<BucketInfo>> Buckets() = 0;   // by name
  virtual Result<BucketInfo> Bucket(std::string_view name) = 0;

  virtual Result<std::unique_ptr<ObjectWriter>> NewObject(const DigestPlan& plan) = 0;
  // Takes a finished writer. kInvalidKey, kKeyTooLong, kPreconditionFailed.
  virtual Result<ObjectInfo> Put(std::string_view bucket, std::string_view key,
                                 std::unique_ptr<ObjectWriter> bytes, const Digests& digests,
                                 ObjectMeta meta, std::optional<ChecksumKind> checksum,
                                 const WriteCondition& condition) = 0;
  virtual Result<std::unique_ptr<ObjectReader>> Open(std::string_view bucket,
                                                     std::string_view key) = 0;
  // Without reading a byte. `meta` empty: the source's. `if_etag`: the source must have it (the
  // caller saw it before), otherwise kPreconditionFailed.
  virtual Result<ObjectInfo> Copy(std::string_view from_bucket, std::string_view from_key,
                                  std::string_view if_etag, std::string_view bucket,
                                  std::string_view key, std::optional<ObjectMeta> meta,
                                  const WriteCondition& condition) = 0;
  virtual Status SetTags(std::string_view bucket, std::string_view key,
                         std::map<std::string, std::string> tags) = 0;
  // In one step; missing keys are fine.
  virtual Status Delete(std::string_view bucket, const std::vector<std::string>& keys,
                        const WriteCondition& condition) = 0;
  virtual Result<ListPage> List(std::string_view bucket, const ListQuery& query) = 0;
  virtual MultipartUploads& uploads() = 0;
};

Status CheckBucketName(std::string_view name);
Status CheckObjectKey(std::string_view key);

}  // namespace athanor
