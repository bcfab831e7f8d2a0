// Buckets, and what is in them.
#include <algorithm>
#include <charconv>

#include "base/text/text.h"
#include "door/aws/xml.h"
#include "door/s3/s3_call.h"

namespace athanor {
namespace {

const std::string kOwner =
    "<Owner><ID>" + std::string(kAwsAccount) + "</ID><DisplayName>athanor</DisplayName></Owner>";

// A number of the query; none: `otherwise`.
std::optional<size_t> Count(const S3Call& call, std::string_view name, size_t otherwise) {
  const std::string text = call.Query(name);
  if (text.empty()) return otherwise;
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return std::min<uint64_t>(value, otherwise);
}

// With encoding-type=url keys may hold what XML cannot.
class Encoder {
 public:
  explicit Encoder(const S3Call& call) : url_(ToLower(call.Query("encoding-type")) == "url") {}
  std::string operator()(std::string_view name, std::string_view text) const {
    if (!url_) return XmlElement(name, text);
    return XmlElement(name, ReplaceAll(UrlEncode(text), "%2F", "/"));
  }
  std::string Tag() const { return url_ ? "<EncodingType>url</EncodingType>" : ""; }

 private:
  const bool url_;
};

}  // namespace

void ListBuckets(const S3Call& call) {
  auto buckets = call.store.Buckets();
  if (!buckets) return call.Refuse(buckets.error());
  const std::string prefix = call.Query("prefix");
  std::string rows;
  for (const auto& bucket : *buckets) {
    if (!StartsWith(bucket.name, prefix)) continue;
    rows += "<Bucket>" + XmlElement("Name", bucket.name) +
            XmlElement("CreationDate", IsoTime(bucket.created)) + "</Bucket>";
  }
  call.Xml("ListAllMyBucketsResult", kOwner + "<Buckets>" + rows + "</Buckets>");
}

void CreateBucket(const S3Call& call) {
  if (!call.request.body.empty()) {
    const auto document = ParseXml(call.request.body);
    if (!document || document->name != "CreateBucketConfiguration") {
      return call.Refuse(
          AwsError{400, "MalformedXML", "the bucket's configuration cannot be read"});
    }
  }
  if (auto made = call.store.CreateBucket(call.bucket); !made.ok())
    return call.Refuse(made.error());
  Response response = call.Head(200);
  response.headers.Add("Location", "/" + call.bucket);
  call.Send(std::move(response));
}

void HeadBucket(const S3Call& call) {
  if (auto found = call.store.Bucket(call.bucket); !found) return call.Refuse(found.error());
  Response response = call.Head(200);
  response.headers.Add("x-amz-bucket-region", call.identity.claim.region);
  call.Send(std::move(response));
}

void DeleteBucket(const S3Call& call) {
  if (auto gone = call.store.DeleteBucket(call.bucket); !gone.ok())
    return call.Refuse(gone.error());
  call.Done();
}

void BucketLocation(const S3Call& call) {
  if (auto found = call.store.Bucket(call.bucket); !found) return call.Refuse(found.error());
  // us-east-1 is shown as an empty element.
  const auto& region = call.identity.claim.region;
  call.Xml("LocationConstraint", region == "us-east-1" ? std::string() : XmlEscape(region));
}

void BucketVersioning(const S3Call& call) {
  if (auto found = call.store.Bucket(call.bucket); !found) return call.Refuse(found.error());
  call.Xml("VersioningConfiguration", "");
}

void GetAcl(const S3Call& call) {
  if (call.key.empty()) {
    if (auto found = call.store.Bucket(call.bucket); !found) return call.Refuse(found.error());
  } else if (auto found = call.store.Open(call.bucket, call.key); !found) {
    return call.Refuse(found.error());
  }
  call.Xml("AccessControlPolicy",
           kOwner +
               "<AccessControlList><Grant><Grantee "
               "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
               "xsi:type=\"CanonicalUser\"><ID>" +
               std::string(kAwsAccount) +
               "</ID><DisplayName>athanor</DisplayName></Grantee><Permission>FULL_CONTROL"
               "</Permission></Grant></AccessControlList>");
}

void PutAcl(const S3Call& call) {
  const auto acl = call.Header("x-amz-acl");
  if (acl == "private" || acl == "bucket-owner-full-control") return call.Done(200);
  call.Refuse(
      AwsError{400, "AccessControlListNotSupported",
               "The bucket does not allow ACLs; here access keys decide who may (ath token)"});
}

void NoBucketConfiguration(const S3Call& call) {
  if (auto found = call.store.Bucket(call.bucket); !found) return call.Refuse(found.error());
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"policy", "NoSuchBucketPolicy"},
      {"cors", "NoSuchCORSConfiguration"},
      {"lifecycle", "NoSuchLifecycleConfiguration"},
      {"tagging", "NoSuchTagSet"},
      {"encryption", "ServerSideEncryptionConfigurationNotFoundError"},
      {"website", "NoSuchWebsiteConfiguration"},
      {"replication", "ReplicationConfigurationNotFoundError"},
      {"object-lock", "ObjectLockConfigurationNotFoundError"},
      {"publicAccessBlock", "NoSuchPublicAccessBlockConfiguration"},
      {"ownershipControls", "OwnershipControlsNotFoundError"},
  };
  for (const auto& [param, code] : kNames) {
    if (call.Asks(param)) {
      return call.Refuse(AwsError{404, code, "buckets of this server have no such configuration"});
    }
  }
}

void ListObjects(const S3Call& call) {
  const bool second = call.Query("list-type") == "2";
  const auto most = Count(call, "max-keys", 1000);
  const std::string token = call.Query("continuation-token");
  const auto after = FromBase64(token);
  if (!most || (!token.empty() && (!after || after->empty()))) {
    return call.Refuse(AwsError{
        400, "InvalidArgument",
        most ? "The continuation token provided is incorrect" : "max-keys is not a number"});
  }
  ListQuery query{call.Query("prefix"), call.Query("delimiter"),
                  second ? call.Query("start-after") : call.Query("marker"), *most};
  if (!token.empty()) query.after = *after;
  auto page = call.store.List(call.bucket, query);
  if (!page) return call.Refuse(page.error());
  const Encoder encoded(call);
  std::string xml = XmlElement("Name", call.bucket) + encoded("Prefix", query.prefix);
  if (!query.delimiter.empty()) xml += encoded("Delimiter", query.delimiter);
  xml += XmlElement("MaxKeys", std::to_string(*most)) + encoded.Tag() +
         XmlElement("IsTruncated", page->truncated ? "true" : "false");
  if (second) {
    xml += XmlElement("KeyCount", std::to_string(page->objects.size() + page->prefixes.size()));
    if (!token.empty()) xml += XmlElement("ContinuationToken", token);
    if (page->truncated) xml += XmlElement("NextContinuationToken", Base64(page->last));
    if (call.Asks("start-after")) xml += encoded("StartAfter", call.Query("start-after"));
  } else {
    xml += encoded("Marker", query.after);
    if (page->truncated) xml += encoded("NextMarker", page->last);
  }
  const bool owner = !second || call.Query("fetch-owner") == "true";
  for (const auto& object : page->objects) {
    xml += "<Contents>" + encoded("Key", object.key) +
           XmlElement("LastModified", IsoTime(object.modified)) + "<ETag>&quot;" + object.etag +
           "&quot;</ETag><Size>" + std::to_string(object.size) +
           "</Size><StorageClass>STANDARD</StorageClass>" + (owner ? kOwner : "") + "</Contents>";
  }
  for (const auto& prefix : page->prefixes) {
    xml += "<CommonPrefixes>" + encoded("Prefix", prefix) + "</CommonPrefixes>";
  }
  call.Xml("ListBucketResult", xml);
}

void ListUploads(const S3Call& call) {
  const auto most = Count(call, "max-uploads", 1000);
  if (!most) return call.Refuse(AwsError{400, "InvalidArgument", "max-uploads is not a number"});
  auto uploads =
      call.store.uploads().List(call.bucket, call.Query("prefix"), call.Query("key-marker"),
                                call.Query("upload-id-marker"), *most + 1);
  if (!uploads) return call.Refuse(uploads.error());
  const bool truncated = uploads->size() > *most;
  if (truncated) uploads->resize(*most);
  const Encoder encoded(call);
  std::string xml = XmlElement("Bucket", call.bucket) +
                    encoded("KeyMarker", call.Query("key-marker")) +
                    XmlElement("UploadIdMarker", call.Query("upload-id-marker")) +
                    encoded("Prefix", call.Query("prefix")) + encoded.Tag() +
                    XmlElement("MaxUploads", std::to_string(*most)) +
                    XmlElement("IsTruncated", truncated ? "true" : "false");
  if (truncated && !uploads->empty()) {
    xml += encoded("NextKeyMarker", uploads->back().key) +
           XmlElement("NextUploadIdMarker", uploads->back().id);
  }
  for (const auto& upload : *uploads) {
    xml += "<Upload>" + encoded("Key", upload.key) + XmlElement("UploadId", upload.id) + kOwner +
           "<StorageClass>STANDARD</StorageClass>" +
           XmlElement("Initiated", IsoTime(upload.started)) + "</Upload>";
  }
  call.Xml("ListMultipartUploadsResult", xml);
}

}  // namespace athanor
