// Changes of objects without a body: copies, deletes, tags, and the start and end of multipart
// uploads.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/text/text.h"
#include "door/aws/xml.h"
#include "door/s3/s3_call.h"

namespace athanor {
namespace {

constexpr size_t kMostDeletes = 1000;
constexpr size_t kMostTags = 10;

struct Source {
  std::string bucket;
  std::string key;
};

// "bucket/key" or "/bucket/key", encoded.
tl::expected<Source, AwsError> SourceOf(const S3Call& call) {
  std::string_view text = call.Header("x-amz-copy-source");
  const auto refuse = [](std::string why) {
    return tl::unexpected(AwsError{400, "InvalidArgument", std::move(why)});
  };
  const size_t version = text.find("?versionId=");
  if (version != std::string_view::npos) {
    if (text.substr(version + 11) != "null") {
      return tl::unexpected(AwsError{404, "NoSuchVersion", "this server keeps no versions"});
    }
    text = text.substr(0, version);
  }
  const auto path = SplitS3Path((StartsWith(text, "/") ? "" : "/") + std::string(text));
  if (!path || path->bucket.empty() || path->key.empty()) {
    return refuse("Copy Source must mention the source bucket and key: bucket/key");
  }
  return Source{path->bucket, path->key};
}

// x-amz-copy-source-if-*
bool SourceFits(const S3Call& call, const ObjectInfo& info) {
  const WallTime modified{info.modified.ms / 1000 * 1000};
  const auto& headers = call.request.headers;
  if (headers.Has("x-amz-copy-source-if-match") &&
      Unquoted(call.Header("x-amz-copy-source-if-match")) != info.etag) {
    return false;
  }
  if (headers.Has("x-amz-copy-source-if-none-match") &&
      Unquoted(call.Header("x-amz-copy-source-if-none-match")) == info.etag) {
    return false;
  }
  const auto unmodified = ParseHttpDate(call.Header("x-amz-copy-source-if-unmodified-since"));
  const auto changed = ParseHttpDate(call.Header("x-amz-copy-source-if-modified-since"));
  return !(unmodified && modified > *unmodified) && !(changed && modified <= *changed);
}

tl::expected<std::unique_ptr<ObjectReader>, AwsError> OpenSource(const S3Call& call,
                                                                 const Source& source) {
  auto reader = call.store.Open(source.bucket, source.key);
  if (!reader) return tl::unexpected(S3ErrorOf(reader.error()));
  if (!SourceFits(call, (*reader)->info())) {
    return tl::unexpected(AwsError{
        412, kPreconditionFailed, "At least one of the pre-conditions you specified did not hold"});
  }
  return std::move(*reader);
}

std::string Checksums(const std::optional<ObjectChecksum>& checksum) {
  if (!checksum) return {};
  return XmlElement(ChecksumTag(checksum->kind), checksum->value) +
         XmlElement("ChecksumType", checksum->full_object ? "FULL_OBJECT" : "COMPOSITE");
}

tl::expected<XmlNode, AwsError> BodyXml(const S3Call& call, std::string_view root) {
  auto document = ParseXml(call.request.body);
  if (!document || document->name != root) {
    return tl::unexpected(
        AwsError{400, "MalformedXML",
                 document ? "the document is no " + std::string(root) : document.error().what});
  }
  return std::move(*document);
}

std::optional<uint32_t> PartNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || stop != text.data() + text.size())
    return std::nullopt;
  return number;
}

// What the client says that the parts come to: x-amz-mp-object-size, x-amz-checksum-*.
tl::expected<WholeObject, AwsError> WholeOf(const S3Call& call, size_t parts) {
  WholeObject whole;
  if (const auto text = call.Header("x-amz-mp-object-size"); !text.empty()) {
    uint64_t size = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || stop != text.data() + text.size()) {
      return tl::unexpected(AwsError{400, "InvalidRequest", "x-amz-mp-object-size is no number"});
    }
    whole.size = size;
  }
  if (const auto given = ChecksumIn(call.request.headers)) {
    const std::string of_parts = "-" + std::to_string(parts);
    const bool full = !SameName(call.Header("x-amz-checksum-type"), "COMPOSITE") &&
                      !EndsWith(given->value, of_parts);
    whole.checksum = ObjectChecksum{given->kind, given->value, full};
    if (!full && !EndsWith(given->value, of_parts)) whole.checksum->value += of_parts;
  }
  return whole;
}

Status CopyBytes(ObjectReader& reader, ObjectWriter& writer) {
  std::string buffer(1 << 20, '\0');
  while (true) {
    ATHANOR_TRY(auto piece, reader.Next());
    if (!piece) return Ok();
    while (piece->length > 0) {
      const size_t want = std::min<uint64_t>(buffer.size(), piece->length);
      const ssize_t got =
          ::pread(piece->fd.get(), buffer.data(), want, static_cast<off_t>(piece->offset));
      if (got <= 0) return FailErrno("read an object", got < 0 ? errno : EIO);
      ATHANOR_CHECK_OK(writer.Write({buffer.data(), static_cast<size_t>(got)}));
      piece->offset += static_cast<uint64_t>(got);
      piece->length -= static_cast<uint64_t>(got);
    }
  }
}

}  // namespace

void CopyObject(const S3Call& call) {
  auto source = SourceOf(call);
  if (!source) return call.Refuse(source.error());
  auto reader = OpenSource(call, *source);
  if (!reader) return call.Refuse(reader.error());
  const bool replace = SameName(call.Header("x-amz-metadata-directive"), "REPLACE");
  const bool replace_tags = SameName(call.Header("x-amz-tagging-directive"), "REPLACE");
  if (!replace && !replace_tags && source->bucket == call.bucket && source->key == call.key &&
      !call.request.headers.Has("x-amz-server-side-encryption") &&
      !call.request.headers.Has("x-amz-storage-class")) {
    return call.Refuse(
        AwsError{400, "InvalidRequest",
                 "This copy request is illegal because it is trying to copy an object "
                 "to itself without changing the object's metadata"});
  }
  auto given = MetaOf(call.request);
  if (!given) return call.Refuse(given.error());
  ObjectMeta meta = (*reader)->info().meta;
  if (replace) {
    meta.headers = given->headers;
    meta.user = given->user;
  }
  if (replace_tags) meta.tags = given->tags;
  auto condition = ConditionOf(call.request);
  if (!condition) return call.Refuse(condition.error());
  auto made = call.store.Copy(source->bucket, source->key, (*reader)->info().etag, call.bucket,
                              call.key, std::move(meta), *condition);
  if (!made) return call.Refuse(made.error());
  call.Xml("CopyObjectResult", XmlElement("LastModified", IsoTime(made->modified)) +
                                   XmlElement("ETag", "\"" + made->etag + "\"") +
                                   Checksums(made->checksum));
}

void CopyPart(const S3Call& call) {
  auto source = SourceOf(call);
  if (!source) return call.Refuse(source.error());
  auto reader = OpenSource(call, *source);
  if (!reader) return call.Refuse(reader.error());
  const uint64_t size = (*reader)->info().size;
  uint64_t first = 0;
  uint64_t last = size == 0 ? 0 : size - 1;
  if (call.request.headers.Has("x-amz-copy-source-range")) {
    std::string_view text = call.Header("x-amz-copy-source-range");
    const size_t dash = text.find('-');
    const bool form = StartsWith(text, "bytes=") && dash != std::string_view::npos;
    const auto number = [](std::string_view digits, uint64_t& value) {
      const auto [stop, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return !digits.empty() && error == std::errc() && stop == digits.data() + digits.size();
    };
    if (!form || !number(text.substr(6, dash - 6), first) || !number(text.substr(dash + 1), last) ||
        first > last || last >= size) {
      return call.Refuse(AwsError{400, "InvalidArgument",
                                  "x-amz-copy-source-range must be bytes=first-last within the "
                                  "source object"});
    }
  }
  auto upload = call.store.uploads().Find(call.bucket, call.key, call.Query("uploadId"));
  if (!upload) return call.Refuse(upload.error());
  auto writer = call.store.NewObject({false, upload->checksum});
  if (!writer) return call.Refuse(writer.error());
  Status copied = (*reader)->Seek(first, size == 0 ? 0 : last - first + 1);
  if (copied.ok()) copied = CopyBytes(**reader, **writer);
  if (!copied.ok()) return call.Refuse(copied.error());
  auto digests = (*writer)->Finish();
  if (!digests) return call.Refuse(digests.error());
  auto part = call.store.uploads().Put(call.bucket, call.key, call.Query("uploadId"),
                                       PartNumber(call.Query("partNumber")).value_or(0),
                                       std::move(*writer), *digests);
  if (!part) return call.Refuse(part.error());
  call.Xml("CopyPartResult",
           XmlElement("LastModified", IsoTime(part->modified)) +
               XmlElement("ETag", "\"" + part->etag + "\"") +
               (upload->checksum ? XmlElement(ChecksumTag(*upload->checksum), part->checksum)
                                 : std::string()));
}

void DeleteObject(const S3Call& call) {
  auto condition = ConditionOf(call.request);
  if (!condition) return call.Refuse(condition.error());
  if (auto gone = call.store.Delete(call.bucket, {call.key}, *condition); !gone.ok()) {
    return call.Refuse(gone.error());
  }
  call.Done();
}

void DeleteObjects(const S3Call& call) {
  const auto document = BodyXml(call, "Delete");
  if (!document) return call.Refuse(document.error());
  std::vector<std::string> keys;
  std::string errors;
  for (const auto& node : document->children) {
    if (node.name != "Object") continue;
    const std::string key(node.TextOf("Key"));
    const auto version = node.TextOf("VersionId");
    if (!version.empty() && version != "null") {
      errors += "<Error>" + XmlElement("Key", key) + XmlElement("Code", "NoSuchVersion") +
                XmlElement("Message", "this server keeps no versions") + "</Error>";
    } else {
      keys.push_back(key);
    }
  }
  if (keys.size() > kMostDeletes || document->children.empty()) {
    return call.Refuse(AwsError{400, "MalformedXML", "name 1 to 1,000 objects to delete"});
  }
  if (auto gone = call.store.Delete(call.bucket, keys, {}); !gone.ok()) {
    return call.Refuse(gone.error());
  }
  std::string xml;
  if (document->TextOf("Quiet") != "true") {
    for (const auto& key : keys) xml += "<Deleted>" + XmlElement("Key", key) + "</Deleted>";
  }
  call.Xml("DeleteResult", xml + errors);
}

void GetTags(const S3Call& call) {
  auto reader = call.store.Open(call.bucket, call.key);
  if (!reader) return call.Refuse(reader.error());
  std::string xml;
  for (const auto& [key, value] : (*reader)->info().meta.tags) {
    xml += "<Tag>" + XmlElement("Key", key) + XmlElement("Value", value) + "</Tag>";
  }
  call.Xml("Tagging", "<TagSet>" + xml + "</TagSet>");
}

void PutTags(const S3Call& call) {
  const auto document = BodyXml(call, "Tagging");
  if (!document) return call.Refuse(document.error());
  std::map<std::string, std::string> tags;
  const XmlNode* set = document->Child("TagSet");
  for (const auto& node : set ? set->children : std::vector<XmlNode>()) {
    const std::string key(node.TextOf("Key"));
    const std::string value(node.TextOf("Value"));
    if (key.empty() || key.size() > 128 || value.size() > 256 || tags.contains(key)) {
      return call.Refuse(AwsError{400, "InvalidTag", "a tag is too long, or named twice"});
    }
    tags[key] = value;
  }
  if (tags.size() > kMostTags) {
    return call.Refuse(AwsError{400, "BadRequest", "Object tags cannot be greater than 10"});
  }
  if (auto set_tags = call.store.SetTags(call.bucket, call.key, std::move(tags)); !set_tags.ok()) {
    return call.Refuse(set_tags.error());
  }
  call.Done(200);
}

void DeleteTags(const S3Call& call) {
  if (auto set = call.store.SetTags(call.bucket, call.key, {}); !set.ok()) {
    return call.Refuse(set.error());
  }
  call.Done();
}

void BeginUpload(const S3Call& call) {
  auto meta = MetaOf(call.request);
  if (!meta) return call.Refuse(meta.error());
  const auto name = call.Header("x-amz-checksum-algorithm");
  const auto kind = ChecksumNamed(name);
  if (!name.empty() && !kind) {
    return call.Refuse(
        AwsError{400, "InvalidRequest", "Checksum algorithm provided is unsupported."});
  }
  const bool full = SameName(call.Header("x-amz-checksum-type"), "FULL_OBJECT") ||
                    kind == ChecksumKind::kCrc64Nvme;
  if (full && (kind == ChecksumKind::kSha1 || kind == ChecksumKind::kSha256)) {
    return call.Refuse(AwsError{
        400, "InvalidRequest", "The FULL_OBJECT checksum type cannot be used with SHA checksums."});
  }
  auto upload = call.store.uploads().Begin(call.bucket, call.key, std::move(*meta), kind, full);
  if (!upload) return call.Refuse(upload.error());
  call.Xml("InitiateMultipartUploadResult", XmlElement("Bucket", call.bucket) +
                                                XmlElement("Key", call.key) +
                                                XmlElement("UploadId", upload->id));
}

void ListParts(const S3Call& call) {
  const auto after = PartNumber(call.Query("part-number-marker"));
  const auto most = PartNumber(call.Query("max-parts"));
  const uint32_t count = std::min<uint32_t>(most.value_or(1000), 1000);
  auto& uploads = call.store.uploads();
  auto upload = uploads.Find(call.bucket, call.key, call.Query("uploadId"));
  if (!upload) return call.Refuse(upload.error());
  auto parts = uploads.Parts(call.bucket, call.key, upload->id, after.value_or(0), count + 1);
  if (!parts) return call.Refuse(parts.error());
  const bool truncated = parts->size() > count;
  if (truncated) parts->resize(count);
  std::string xml = XmlElement("Bucket", call.bucket) + XmlElement("Key", call.key) +
                    XmlElement("UploadId", upload->id) +
                    XmlElement("PartNumberMarker", std::to_string(after.value_or(0))) +
                    XmlElement("MaxParts", std::to_string(count)) +
                    XmlElement("IsTruncated", truncated ? "true" : "false") +
                    "<StorageClass>STANDARD</StorageClass>";
  if (!parts->empty()) {
    xml += XmlElement("NextPartNumberMarker", std::to_string(parts->back().number));
  }
  for (const auto& part : *parts) {
    xml += "<Part>" + XmlElement("PartNumber", std::to_string(part.number)) +
           XmlElement("LastModified", IsoTime(part.modified)) +
           XmlElement("ETag", "\"" + part.etag + "\"") +
           XmlElement("Size", std::to_string(part.size));
    if (upload->checksum && !part.checksum.empty()) {
      xml += XmlElement(ChecksumTag(*upload->checksum), part.checksum);
    }
    xml += "</Part>";
  }
  call.Xml("ListPartsResult", xml);
}

void CompleteUpload(const S3Call& call) {
  const auto document = BodyXml(call, "CompleteMultipartUpload");
  if (!document) return call.Refuse(document.error());
  std::vector<NamedPart> parts;
  for (const auto& node : document->children) {
    if (node.name != "Part") continue;
    const auto number = PartNumber(Trim(node.TextOf("PartNumber")));
    if (!number || parts.size() >= kMostParts) {
      return call.Refuse(
          AwsError{400, "MalformedXML", "a part has no number, or there are too many"});
    }
    NamedPart part{*number, Unquoted(node.TextOf("ETag")), {}};
    for (const auto& child : node.children) {
      if (StartsWith(child.name, "Checksum")) part.checksum = Trim(child.text);
    }
    parts.push_back(std::move(part));
  }
  if (parts.empty()) {
    return call.Refuse(AwsError{400, "MalformedXML", "name at least one part"});
  }
  auto condition = ConditionOf(call.request);
  if (!condition) return call.Refuse(condition.error());
  const auto whole = WholeOf(call, parts.size());
  if (!whole) return call.Refuse(whole.error());
  auto made = call.store.uploads().Complete(call.bucket, call.key, call.Query("uploadId"), parts,
                                            *condition, *whole);
  if (!made) return call.Refuse(made.error());
  call.Xml("CompleteMultipartUploadResult",
           XmlElement("Location", "/" + call.bucket + "/" + call.key) +
               XmlElement("Bucket", call.bucket) + XmlElement("Key", call.key) +
               XmlElement("ETag", "\"" + made->etag + "\"") + Checksums(made->checksum));
}

void AbortUpload(const S3Call& call) {
  if (auto gone = call.store.uploads().Abort(call.bucket, call.key, call.Query("uploadId"));
      !gone.ok()) {
    return call.Refuse(gone.error());
  }
  call.Done();
}

}  // namespace athanor
