// Our own HMAC over OpenSSL's plain SHA-256: OpenSSL's HMAC spends more time on set-up than on
// computing, and every signed request needs several.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "net/aws/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <optional>

#include "base/io/hash.h"
#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kEnd = "aws4_request";
constexpr int64_t kLongestLife = 7 * 24 * 3600;  // of a presigned URL
constexpr size_t kMostHeaders = 200;

tl::unexpected<SigV4Error> Broken(SigV4Fault fault, std::string what) {
  return tl::unexpected(SigV4Error{fault, std::move(what)});
}

bool IsHexDigest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool AllDigits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "20261116T002301Z" as milliseconds since 1970.
std::optional<int64_t> ParseTime(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z' || !AllDigits(text.substr(0, 8)) ||
      !AllDigits(text.substr(9, 6))) {
    return std::nullopt;
  }
  const auto number = [&](size_t at, size_t count) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + count, value);
    return value;
  };
  std::tm parts{};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(4, 2) - 1;
  parts.tm_mday = number(6, 2);
  parts.tm_hour = number(9, 2);
  parts.tm_min = number(11, 2);
  parts.tm_sec = number(13, 2);
  if (parts.tm_year < 70 || parts.tm_mon < 0 || parts.tm_mon > 11 || parts.tm_mday < 1 ||
      parts.tm_mday > 31 || parts.tm_hour > 23 || parts.tm_min > 59 || parts.tm_sec > 60) {
    return std::nullopt;
  }
  return static_cast<int64_t>(::timegm(&parts)) * 1000;
}

tl::expected<void, SigV4Error> TakeCredential(SigV4Claim& claim, std::string_view text) {
  const auto parts = Split(text, '/');
  // An access key id may hold slashes; the four parts of the scope may not.
  if (parts.size() < 5 || parts.back() != kEnd) {
    return Broken(SigV4Fault::kMalformed, "Credential is not KEY/DATE/REGION/SERVICE/aws4_request");
  }
  const size_t n = parts.size();
  claim.key_id = Join({parts.begin(), parts.end() - 4}, "/");
  claim.date = parts[n - 4];
  claim.region = parts[n - 3];
  claim.service = parts[n - 2];
  if (claim.key_id.empty() || claim.key_id.size() > 128 || claim.date.size() != 8 ||
      !AllDigits(claim.date) || claim.region.empty() || claim.service.empty()) {
    return Broken(SigV4Fault::kMalformed, "Credential is not KEY/DATE/REGION/SERVICE/aws4_request");
  }
  return {};
}

tl::expected<void, SigV4Error> TakeSignedHeaders(SigV4Claim& claim, std::string_view text) {
  claim.signed_headers = Split(text, ';');
  if (text.empty() || claim.signed_headers.size() > kMostHeaders) {
    return Broken(SigV4Fault::kMalformed, "SignedHeaders names no header, or too many");
  }
  for (auto& name : claim.signed_headers) name = ToLower(Trim(name));
  std::sort(claim.signed_headers.begin(), claim.signed_headers.end());
  const bool twice = std::adjacent_find(claim.signed_headers.begin(), claim.signed_headers.end()) !=
                     claim.signed_headers.end();
  if (twice || claim.signed_headers.front().empty()) {
    return Broken(SigV4Fault::kMalformed, "SignedHeaders names a header twice, or none");
  }
  return {};
}

tl::expected<void, SigV4Error> TakeTime(SigV4Claim& claim, std::string_view text) {
  const auto at = ParseTime(text);
  if (!at) {
    return Broken(SigV4Fault::kMissingDate,
                  "a signed request needs X-Amz-Date in the form 20261116T002301Z");
  }
  if (text.substr(0, 8) != claim.date) {
    return Broken(SigV4Fault::kMalformed, "the day in Credential is not that of X-Amz-Date");
  }
  claim.time = text;
  claim.signed_at_ms = *at;
  return {};
}

tl::expected<void, SigV4Error> TakePayload(SigV4Claim& claim, std::string_view text) {
  constexpr std::pair<std::string_view, SigV4Payload> kModes[] = {
      {kUnsignedPayload, SigV4Payload::kUnsigned},
      {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", SigV4Payload::kSignedChunks},
      {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", SigV4Payload::kSignedChunksTrailer},
      {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", SigV4Payload::kUnsignedChunksTrailer},
  };
  claim.payload = text;
  if (text.empty()) return {};
  for (const auto& [name, mode] : kModes) {
    if (name == text) {
      claim.payload_mode = mode;
      return {};
    }
  }
  claim.payload_mode = SigV4Payload::kSha256;
  if (IsHexDigest(text)) return {};
  return Broken(SigV4Fault::kMalformed,
                "x-amz-content-sha256 is neither a SHA-256 digest nor a known payload mode");
}

tl::expected<void, SigV4Error> TakeSignature(SigV4Claim& claim, std::string_view text) {
  claim.signature = text;
  if (IsHexDigest(text)) return {};
  return Broken(SigV4Fault::kMalformed, "Signature is not 64 hexadecimal digits");
}

tl::expected<SigV4Claim, SigV4Error> ParseHeader(const Request& head) {
  std::string_view rest = head.headers.Get("Authorization");
  if (head.headers.Count("Authorization") != 1 || !StartsWith(rest, kAlgorithm)) {
    return Broken(SigV4Fault::kMalformed, "exactly one AWS4-HMAC-SHA256 authorization is needed");
  }
  rest.remove_prefix(kAlgorithm.size());
  std::optional<std::string> fields[3];
  constexpr std::string_view kNames[3] = {"Credential", "SignedHeaders", "Signature"};
  for (const auto& part : Split(rest, ',')) {
    const std::string_view field = Trim(part);
    const size_t equal = field.find('=');
    const auto* name = std::find(std::begin(kNames), std::end(kNames), field.substr(0, equal));
    if (equal == std::string_view::npos || name == std::end(kNames)) {
      return Broken(SigV4Fault::kMalformed, "the authorization header cannot be read");
    }
    auto& slot = fields[name - std::begin(kNames)];
    if (slot) return Broken(SigV4Fault::kMalformed, std::string(*name) + " is given twice");
    slot = field.substr(equal + 1);
  }
  if (!fields[0] || !fields[1] || !fields[2]) {
    return Broken(SigV4Fault::kMalformed,
                  "the authorization header lacks Credential, SignedHeaders or Signature");
  }
  SigV4Claim claim;
  if (auto taken = TakeCredential(claim, *fields[0]); !taken) return tl::unexpected(taken.error());
  if (auto taken = TakeSignedHeaders(claim, *fields[1]); !taken) {
    return tl::unexpected(taken.error());
  }
  if (auto taken = TakeSignature(claim, *fields[2]); !taken) return tl::unexpected(taken.error());
  if (auto taken = TakeTime(claim, head.headers.Get("X-Amz-Date")); !taken) {
    return tl::unexpected(taken.error());
  }
  if (auto taken = TakePayload(claim, head.headers.Get("X-Amz-Content-Sha256")); !taken) {
    return tl::unexpected(taken.error());
  }
  claim.token = head.headers.Get("X-Amz-Security-Token");
  return claim;
}

tl::expected<SigV4Claim, SigV4Error> ParsePresigned(const Request& head) {
  const auto one = [&](std::string_view name) -> std::optional<std::string> {
    std::optional<std::string> found;
    for (const auto& [key, value] : head.query) {
      if (key != name) continue;
      if (found) return std::nullopt;  // given twice: two readers could differ
      found = value;
    }
    return found;
  };
  const auto algorithm = one("X-Amz-Algorithm");
  const auto credential = one("X-Amz-Credential");
  const auto names = one("X-Amz-SignedHeaders");
  const auto signature = one("X-Amz-Signature");
  const auto time = one("X-Amz-Date");
  const auto expires = one("X-Amz-Expires");
  if (algorithm != kAlgorithm || !credential || !names || !signature || !time || !expires) {
    return Broken(SigV4Fault::kMalformed,
                  "a presigned request needs X-Amz-Algorithm, X-Amz-Credential, X-Amz-Date, "
                  "X-Amz-Expires, X-Amz-SignedHeaders and X-Amz-Signature, once each");
  }
  SigV4Claim claim;
  claim.presigned = true;
  const auto [stop, error] =
      std::from_chars(expires->data(), expires->data() + expires->size(), claim.expires_s);
  if (error != std::errc() || stop != expires->data() + expires->size() || claim.expires_s < 1 ||
      claim.expires_s > kLongestLife) {
    return Broken(SigV4Fault::kMalformed, "X-Amz-Expires must be 1 to 604800 seconds");
  }
  if (auto taken = TakeCredential(claim, *credential); !taken) {
    return tl::unexpected(taken.error());
  }
  if (auto taken = TakeSignedHeaders(claim, *names); !taken) return tl::unexpected(taken.error());
  if (auto taken = TakeSignature(claim, *signature); !taken) return tl::unexpected(taken.error());
  if (auto taken = TakeTime(claim, *time); !taken) return tl::unexpected(taken.error());
  // S3 leaves the payload out of presigned URLs unless a header says otherwise.
  std::string payload(head.headers.Get("X-Amz-Content-Sha256"));
  if (payload.empty()) payload = one("X-Amz-Content-Sha256").value_or("");
  if (payload.empty() && claim.service == "s3") payload = kUnsignedPayload;
  if (auto taken = TakePayload(claim, payload); !taken) return tl::unexpected(taken.error());
  claim.token = one("X-Amz-Security-Token").value_or("");
  return claim;
}

// Every byte except A-Z a-z 0-9 - _ . ~ and the slash.
std::string EncodePath(std::string_view path) {
  std::string out;
  size_t start = 0;
  for (;;) {
    const size_t slash = path.find('/', start);
    out += UrlEncode(path.substr(start, slash - start));
    if (slash == std::string_view::npos) return out;
    out += '/';
    start = slash + 1;
  }
}

// Without "." and ".." and empty segments, as services other than S3 sign it.
std::string Normalized(std::string_view path) {
  std::vector<std::string> kept;
  for (auto& part : Split(path, '/')) {
    if (part == ".." && !kept.empty()) kept.pop_back();
    if (part.empty() || part == "." || part == "..") continue;
    kept.push_back(std::move(part));
  }
  std::string out = "/" + Join(kept, "/");
  if (out.size() > 1 && EndsWith(path, "/")) out += '/';
  return out;
}

std::string CanonicalQuery(const SigV4Claim& claim, const Request& head) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [name, value] : head.query) {
    if (claim.presigned && name == "X-Amz-Signature") continue;
    pairs.emplace_back(UrlEncode(name), UrlEncode(value));
  }
  std::sort(pairs.begin(), pairs.end());
  std::string out;
  for (const auto& [name, value] : pairs) {
    if (!out.empty()) out += '&';
    out += name + "=" + value;
  }
  return out;
}

// Trimmed, with runs of spaces reduced to one.
std::string Squeezed(std::string_view value) {
  std::string out;
  for (const char c : Trim(value)) {
    if (c == ' ' && !out.empty() && out.back() == ' ') continue;
    out += c;
  }
  return out;
}

std::string CanonicalHeaders(const SigV4Claim& claim, const Request& head) {
  std::string out;
  for (const auto& name : claim.signed_headers) {
    std::string values;
    bool first = true;
    for (const auto& [key, value] : head.headers.fields()) {
      if (!SameName(key, name)) continue;
      if (!first) values += ',';
      first = false;
      values += Squeezed(value);
    }
    out += name + ":" + values + "\n";
  }
  return out;
}

tl::expected<void, SigV4Error> CheckCoverage(const SigV4Claim& claim, const Request& head) {
  const auto covered = [&](std::string_view name) {
    return std::binary_search(claim.signed_headers.begin(), claim.signed_headers.end(),
                              ToLower(name));
  };
  if (!covered("host")) {
    return Broken(SigV4Fault::kUnsignedHeaders, "the host header must be signed");
  }
  for (const auto& [name, value] : head.headers.fields()) {
    if (StartsWith(ToLower(name), "x-amz-") && !covered(name)) {
      return Broken(SigV4Fault::kUnsignedHeaders,
                    "the header " + ToLower(Printable(name)) + " is present but not signed");
    }
  }
  return {};
}

tl::expected<void, SigV4Error> CheckTime(const SigV4Claim& claim, WallTime now) {
  constexpr int64_t kSkewMs = std::chrono::milliseconds(kSigV4Skew).count();
  const int64_t age = now.ms - claim.signed_at_ms;
  if (claim.presigned) {
    if (age < -kSkewMs) return Broken(SigV4Fault::kSkewed, "the request is not valid yet");
    if (age > claim.expires_s * 1000)
      return Broken(SigV4Fault::kExpired, "the request has expired");
    return {};
  }
  if (age < -kSkewMs || age > kSkewMs) {
    return Broken(SigV4Fault::kSkewed,
                  fmt::format("the request was signed at {}, which is more than {} minutes from "
                              "this server's time",
                              claim.time, kSigV4Skew.count()));
  }
  return {};
}

bool Signs(const SigV4Claim& claim, const Request& head, std::string_view key,
           std::string_view path, std::string_view payload) {
  const std::string canonical = head.method + "\n" + std::string(path) + "\n" +
                                CanonicalQuery(claim, head) + "\n" + CanonicalHeaders(claim, head) +
                                "\n" + Join(claim.signed_headers, ";") + "\n" +
                                std::string(payload);
  const std::string text = std::string(kAlgorithm) + "\n" + claim.time + "\n" + claim.Scope() +
                           "\n" + Sha256Hex(canonical);
  return SameSecretText(Hex(HmacSha256(key, text)), claim.signature);
}

}  // namespace

std::string SigV4Claim::Scope() const {
  return date + "/" + region + "/" + service + "/" + std::string(kEnd);
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, SHA256_CBLOCK> pad{};
  std::string out(SHA256_DIGEST_LENGTH, '\0');
  auto* digest = reinterpret_cast<unsigned char*>(out.data());
  if (key.size() > pad.size()) {
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), pad.data());
  } else {
    std::copy(key.begin(), key.end(), pad.begin());
  }
  SHA256_CTX context;
  const auto begin = [&](unsigned char mask) {
    for (auto& byte : pad) byte ^= mask;
    SHA256_Init(&context);
    SHA256_Update(&context, pad.data(), pad.size());
  };
  constexpr unsigned char kInner = 0x36;  // RFC 2104
  constexpr unsigned char kOuter = 0x5c;
  begin(kInner);
  SHA256_Update(&context, text.data(), text.size());
  SHA256_Final(digest, &context);
  begin(kInner ^ kOuter);
  SHA256_Update(&context, digest, out.size());
  SHA256_Final(digest, &context);
  OPENSSL_cleanse(pad.data(), pad.size());
  return out;
}

std::string SigV4SigningKey(std::string_view secret, const SigV4Claim& claim) {
  std::string start = "AWS4" + std::string(secret);
  std::string key = HmacSha256(start, claim.date);
  OPENSSL_cleanse(start.data(), start.size());
  key = HmacSha256(key, claim.region);
  key = HmacSha256(key, claim.service);
  return HmacSha256(key, kEnd);
}

bool HasSigV4(const Request& head) {
  if (StartsWith(head.headers.Get("Authorization"), "AWS4-")) return true;
  return std::any_of(head.query.begin(), head.query.end(), [](const auto& pair) {
    return pair.first == "X-Amz-Signature" || pair.first == "X-Amz-Algorithm";
  });
}

tl::expected<SigV4Claim, SigV4Error> ParseSigV4(const Request& head) {
  if (head.headers.Has("Authorization")) {
    if (head.Query("X-Amz-Signature")) {
      return Broken(SigV4Fault::kMalformed, "signed twice: by a header and by the query");
    }
    return ParseHeader(head);
  }
  return ParsePresigned(head);
}

tl::expected<void, SigV4Error> VerifySigV4(const SigV4Claim& claim, const Request& head,
                                           std::string_view secret, WallTime now,
                                           std::string_view body_sha256) {
  if (auto covered = CheckCoverage(claim, head); !covered) return covered;
  if (auto timely = CheckTime(claim, now); !timely) return timely;
  const std::string key = SigV4SigningKey(secret, claim);
  const std::string payload(claim.payload.empty() ? body_sha256 : claim.payload);
  if (claim.service == "s3") {
    if (Signs(claim, head, key, head.raw_path, payload)) return {};
    // Some clients send bytes unencoded that they sign encoded.
    const auto decoded = UrlDecode(head.raw_path);
    if (decoded && Signs(claim, head, key, EncodePath(*decoded), payload)) return {};
  } else if (Signs(claim, head, key, EncodePath(Normalized(head.raw_path)), payload)) {
    return {};
  }
  return Broken(SigV4Fault::kMismatch,
                "the signature we calculated does not match the one you provided");
}

}  // namespace athanor
