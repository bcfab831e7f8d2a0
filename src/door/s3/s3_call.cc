#include "door/s3/s3_call.h"

#include <algorithm>
#include <ctime>

#include "base/text/text.h"
#include "door/aws/xml.h"
#include "door/s3/s3_door.h"

namespace athanor {
namespace {

constexpr std::string_view kXmlHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
constexpr std::string_view kXmlns = "http://s3.amazonaws.com/doc/2006-03-01/";
constexpr size_t kMostMetaBytes = 8 << 10;
constexpr size_t kMostTags = 10;

constexpr std::pair<std::string_view, int> kStatuses[] = {
    {kNoSuchBucket, 404},     {kNoSuchKey, 404},      {kNoSuchUpload, 404},
    {kBucketTaken, 409},      {kBucketNotEmpty, 409}, {kInvalidBucketName, 400},
    {kInvalidKey, 400},       {kKeyTooLong, 400},     {kInvalidPart, 400},
    {kInvalidPartOrder, 400}, {kPartTooSmall, 400},   {kPreconditionFailed, 412},
    {kBadDigest, 400},
};

constexpr std::string_view kKeptHeaders[] = {"content-type",     "content-encoding",
                                             "content-language", "content-disposition",
                                             "cache-control",    "expires"};

constexpr ChecksumKind kKinds[] = {ChecksumKind::kCrc32, ChecksumKind::kCrc32c,
                                   ChecksumKind::kCrc64Nvme, ChecksumKind::kSha1,
                                   ChecksumKind::kSha256};

// aws-chunked is how the body came, not what the object is.
std::string WithoutChunked(std::string_view encodings) {
  std::vector<std::string> kept;
  for (const auto& part : Split(encodings, ',')) {
    const auto name = Trim(part);
    if (!name.empty() && !SameName(name, "aws-chunked")) kept.emplace_back(name);
  }
  return Join(kept, ",");
}

void AddCommon(Response& response, std::string_view request_id) {
  response.headers.Add("x-amz-request-id", std::string(request_id));
  response.headers.Add("x-amz-id-2", "athanor");
  // Users' bytes never run in a browser as our pages.
  response.headers.Add("Content-Security-Policy", "sandbox; default-src 'none'");
}

}  // namespace

bool S3Call::Asks(std::string_view name) const { return request.Query(name).has_value(); }

std::string S3Call::Query(std::string_view name) const { return request.Query(name).value_or(""); }

Response S3Call::Head(int status) const {
  Response response{status, {}, ""};
  AddCommon(response, request_id);
  return response;
}

void S3Call::Xml(std::string_view root, std::string_view inner) const {
  Response response = Head(200);
  response.headers.Add("Content-Type", "application/xml");
  response.body = std::string(kXmlHead) + "<" + std::string(root) + " xmlns=\"" +
                  std::string(kXmlns) + "\">" + std::string(inner) + "</" + std::string(root) + ">";
  Send(std::move(response));
}

void S3Call::Refuse(const AwsError& error) const { Send(S3Refusal(request, error, request_id)); }

void S3Call::Refuse(const Error& error) const { Refuse(S3ErrorOf(error)); }

Response S3Refusal(const Request& head, const AwsError& error, std::string_view request_id) {
  Response response{error.status, {}, ""};
  AddCommon(response, request_id);
  if (error.status == 304) return response;
  response.headers.Add("Content-Type", "application/xml");
  response.body =
      std::string(kXmlHead) + "<Error>" + XmlElement("Code", error.code) +
      XmlElement("Message", error.message) + XmlElement("Resource", Printable(head.raw_path)) +
      XmlElement("RequestId", request_id) + XmlElement("HostId", "athanor") + "</Error>";
  return response;
}

AwsError S3ErrorOf(const Error& error) {
  std::string message = error.what;
  if (!error.hint.empty()) message += "; " + error.hint;
  for (const auto& [id, status] : kStatuses) {
    if (error.id == id) return {status, error.id, std::move(message)};
  }
  if (error.code == ErrorCode::kExhausted) return {507, "InsufficientStorage", std::move(message)};
  if (error.code == ErrorCode::kUnavailable) return {503, "ServiceUnavailable", std::move(message)};
  return {500, "InternalError", std::move(message)};
}

std::optional<S3Path> SplitS3Path(std::string_view raw_path) {
  if (raw_path.empty() || raw_path[0] != '/') return std::nullopt;
  const size_t slash = raw_path.find('/', 1);
  const auto bucket =
      UrlDecode(raw_path.substr(1, slash == std::string_view::npos ? slash : slash - 1));
  if (!bucket) return std::nullopt;
  if (slash == std::string_view::npos) return S3Path{*bucket, ""};
  const auto key = UrlDecode(raw_path.substr(slash + 1));
  if (!key) return std::nullopt;
  return S3Path{*bucket, *key};
}

std::string Unquoted(std::string_view etag) {
  etag = Trim(etag);
  if (StartsWith(etag, "W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return std::string(etag);
}

std::string HttpDate(WallTime time) {
  const std::time_t seconds = static_cast<std::time_t>(time.ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
}

std::optional<WallTime> ParseHttpDate(std::string_view text) {
  std::tm parts{};
  const std::string copy(text);
  const char* end = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (!end || *end != '\0') return std::nullopt;
  return WallTime{static_cast<int64_t>(::timegm(&parts)) * 1000};
}

std::string IsoTime(WallTime time) {
  // Whole seconds, as HEAD gives them: clients compare the two.
  return Rfc3339(WallTime{time.ms / 1000 * 1000});
}

tl::expected<ObjectMeta, AwsError> MetaOf(const Request& request) {
  constexpr std::string_view kPrefix = "x-amz-meta-";
  ObjectMeta meta;
  size_t bytes = 0;
  for (const auto& [name, value] : request.headers.fields()) {
    const std::string lower = ToLower(name);
    if (StartsWith(lower, kPrefix)) {
      auto& kept = meta.user[lower.substr(kPrefix.size())];
      kept += (kept.empty() ? "" : ",") + value;
      bytes += name.size() + value.size();
    } else if (std::find(std::begin(kKeptHeaders), std::end(kKeptHeaders), lower) !=
               std::end(kKeptHeaders)) {
      const std::string kept = lower == "content-encoding" ? WithoutChunked(value) : value;
      if (!kept.empty()) meta.headers[lower] = kept;
    }
    if (!IsUtf8(value)) {
      return tl::unexpected(AwsError{400, "InvalidArgument", "a header is not UTF-8: " + lower});
    }
  }
  if (bytes > kMostMetaBytes) {
    return tl::unexpected(
        AwsError{400, "MetadataTooLarge", "the metadata headers have more than 8 KiB"});
  }
  const auto tags = ParseQuery(request.headers.Get("x-amz-tagging"));
  if (!tags) return tl::unexpected(AwsError{400, "InvalidTag", "x-amz-tagging cannot be read"});
  for (const auto& [name, value] : *tags) meta.tags[name] = value;
  if (meta.tags.size() > kMostTags) {
    return tl::unexpected(AwsError{400, "BadRequest", "Object tags cannot be greater than 10"});
  }
  return meta;
}

tl::expected<WriteCondition, AwsError> ConditionOf(const Request& request) {
  WriteCondition condition;
  if (request.headers.Has("If-Match")) {
    condition.if_match = Unquoted(request.headers.Get("If-Match"));
  }
  if (request.headers.Has("If-None-Match")) {
    condition.if_none_match = Unquoted(request.headers.Get("If-None-Match"));
  }
  return condition;
}

std::optional<AwsError> RefuseUnsupported(const Request& request) {
  const auto acl = request.headers.Get("x-amz-acl");
  if (!acl.empty() && acl != "private" && acl != "bucket-owner-full-control") {
    return AwsError{400, "AccessControlListNotSupported",
                    "The bucket does not allow ACLs; here access keys decide who may (ath token)"};
  }
  for (const auto& [name, value] : request.headers.fields()) {
    const std::string lower = ToLower(name);
    if (StartsWith(lower, "x-amz-server-side-encryption-customer-") ||
        StartsWith(lower, "x-amz-object-lock-") || StartsWith(lower, "x-amz-grant-") ||
        lower == "x-amz-website-redirect-location" || lower == "x-amz-write-offset-bytes") {
      return AwsError{501, "NotImplemented",
                      "the header " + lower + " asks for something that this server does not do"};
    }
  }
  const auto owner = request.headers.Get("x-amz-expected-bucket-owner");
  if (!owner.empty() && owner != kAwsAccount) {
    return AwsError{403, "AccessDenied",
                    "the bucket belongs to account " + std::string(kAwsAccount)};
  }
  return std::nullopt;
}

std::optional<GivenChecksum> ChecksumIn(const Headers& headers) {
  for (const auto kind : kKinds) {
    const std::string name = ChecksumHeader(kind);
    if (headers.Has(name)) return GivenChecksum{kind, std::string(headers.Get(name))};
  }
  return std::nullopt;
}

std::string ChecksumHeader(ChecksumKind kind) { return "x-amz-checksum-" + ToLower(NameOf(kind)); }

std::string ChecksumTag(ChecksumKind kind) { return "Checksum" + std::string(NameOf(kind)); }

}  // namespace athanor
