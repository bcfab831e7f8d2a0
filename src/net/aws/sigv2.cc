#include "net/aws/sigv2.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

// Query parameters that the signature covers, in order.
constexpr std::string_view kCovered[] = {"acl",
                                         "cors",
                                         "delete",
                                         "lifecycle",
                                         "location",
                                         "logging",
                                         "notification",
                                         "partNumber",
                                         "policy",
                                         "requestPayment",
                                         "response-cache-control",
                                         "response-content-disposition",
                                         "response-content-encoding",
                                         "response-content-language",
                                         "response-content-type",
                                         "response-expires",
                                         "restore",
                                         "tagging",
                                         "torrent",
                                         "uploadId",
                                         "uploads",
                                         "versionId",
                                         "versioning",
                                         "versions",
                                         "website"};
// Those that make up the signature, and headers that botocore repeats; x-id repeats what the path
// and the method say.
constexpr std::string_view kOwn[] = {"AWSAccessKeyId", "Signature",   "Expires",
                                     "content-type",   "content-md5", "x-id"};

tl::unexpected<SigV4Error> Broken(SigV4Fault fault, std::string what) {
  return tl::unexpected(SigV4Error{fault, std::move(what)});
}

template <size_t N>
bool In(const std::string_view (&list)[N], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

std::string HmacSha1(std::string_view key, std::string_view text) {
  std::string out(20, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha1(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  return out;
}

std::string HeaderOrQuery(const Request& head, std::string_view name) {
  if (head.headers.Has(name)) return std::string(head.headers.Get(name));
  return head.Query(name).value_or("");
}

std::string CanonicalAmzHeaders(const Request& head) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : head.headers.fields()) {
    const std::string lower = ToLower(name);
    if (!StartsWith(lower, "x-amz-")) continue;
    auto [at, first] = values.try_emplace(lower);
    if (!first) at->second += ',';
    at->second += Trim(value);
  }
  std::string out;
  for (const auto& [name, value] : values) out += name + ":" + value + "\n";
  return out;
}

std::string CanonicalResource(const Request& head) {
  std::string out = head.raw_path;
  char separator = '?';
  for (const auto name : kCovered) {
    const auto value = head.Query(name);
    if (!value) continue;
    out += separator + std::string(name);
    if (!value->empty()) out += "=" + *value;
    separator = '&';
  }
  return out;
}

}  // namespace

bool HasSigV2(const Request& head) {
  return head.Query("AWSAccessKeyId") && head.Query("Signature");
}

bool HasSigV2Header(const Request& head) {
  return StartsWith(head.headers.Get("Authorization"), "AWS ");
}

tl::expected<SigV4Claim, SigV4Error> ParseSigV2(const Request& head, std::string region) {
  std::map<std::string_view, int> times;
  for (const auto& [name, value] : head.query) ++times[name];
  const bool twice =
      std::any_of(times.begin(), times.end(), [](const auto& pair) { return pair.second > 1; });
  const std::string expires = head.Query("Expires").value_or("");
  int64_t at = 0;
  const auto [stop, error] = std::from_chars(expires.data(), expires.data() + expires.size(), at);
  const bool number = !expires.empty() && error == std::errc() &&
                      stop == expires.data() + expires.size() && at > 0 && at < (1ll << 40);
  SigV4Claim claim;
  claim.key_id = head.Query("AWSAccessKeyId").value_or("");
  claim.signature = head.Query("Signature").value_or("");
  if (twice || !number || claim.key_id.empty() || claim.key_id.size() > 128 ||
      head.headers.Has("Authorization")) {
    return Broken(SigV4Fault::kMalformed,
                  "a presigned request of version 2 needs AWSAccessKeyId, Expires and Signature, "
                  "once each, and no Authorization");
  }
  claim.region = std::move(region);
  claim.service = "s3";
  claim.time = expires;
  claim.payload = kUnsignedPayload;
  claim.payload_mode = SigV4Payload::kUnsigned;
  claim.presigned = true;
  claim.expires_s = at;
  return claim;
}

tl::expected<void, SigV4Error> VerifySigV2(const SigV4Claim& claim, const Request& head,
                                           std::string_view secret, WallTime now) {
  for (const auto& [name, value] : head.query) {
    if (In(kOwn, name) || In(kCovered, name)) continue;
    return Broken(
        SigV4Fault::kUnsignedHeaders,
        "signature version 2 does not cover the parameter " + Printable(name.substr(0, 80)));
  }
  for (const std::string_view name : {"content-type", "content-md5"}) {
    const auto query = head.Query(name);
    if (query && head.headers.Has(name) && head.headers.Get(name) != *query) {
      return Broken(SigV4Fault::kMismatch,
                    "the header " + std::string(name) + " is not the one that was signed");
    }
  }
  if (now.ms / 1000 > claim.expires_s) {
    return Broken(SigV4Fault::kExpired, "the request has expired");
  }
  const std::string text = head.method + "\n" + HeaderOrQuery(head, "content-md5") + "\n" +
                           HeaderOrQuery(head, "content-type") + "\n" + claim.time + "\n" +
                           CanonicalAmzHeaders(head) + CanonicalResource(head);
  if (SameSecretText(Base64(HmacSha1(secret, text)), claim.signature)) return {};
  return Broken(SigV4Fault::kMismatch,
                "the signature we calculated does not match the one you provided");
}

}  // namespace athanor
