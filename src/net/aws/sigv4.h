// AWS Signature Version 4, the server's side: takes the claim a request makes (an
// Authorization header or a presigned query) and checks it against a secret. Pure: no
// clock, no key store, no sockets; a door maps the faults to its service's error codes.
//
// What is signed is what is acted upon: the canonical request is built from the parsed
// query, the headers as they arrived and the path as it was sent. A header whose name
// starts with "x-amz-" must be among the signed ones.
//
// A valid signature can be sent again until its time is up (15 minutes either way, or the expiry of
// a presigned URL), as always with this scheme.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "base/exec/clock.h"
#include "net/http/http_types.h"

namespace athanor {

inline constexpr std::chrono::minutes kSigV4Skew{15};
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

enum class SigV4Fault {
  kMalformed,  // the header or query cannot be read
  kMissingDate,
  kSkewed,           // signed too long ago, or in the future
  kExpired,          // a presigned URL whose time is up
  kUnsignedHeaders,  // host or an x-amz- header is not covered
  kMismatch,         // another secret, or something was changed on the way
};

struct SigV4Error {
  SigV4Fault fault = SigV4Fault::kMalformed;
  std::string what;  // one line for a person; never holds a secret or the right signature
};

// How the body is covered by the signature.
enum class SigV4Payload {
  kNone,    // not given: services other than S3 sign the body's sha256
  kSha256,  // that digest, in SigV4Claim::payload
  kUnsigned,
  kSignedChunks,           // aws-chunked, each chunk signed
  kSignedChunksTrailer,    // the same, and signed trailers
  kUnsignedChunksTrailer,  // aws-chunked without signatures, with trailers
};

// What a request says about its signer. Nothing in it is verified yet.
struct SigV4Claim {
  std::string key_id;
  std::string date;  // "20261116"
  std::string region;
  std::string service;                      // "s3"
  std::string time;                         // "20261116T002301Z"
  std::vector<std::string> signed_headers;  // lower case, sorted
  std::string signature;                    // 64 hex digits
  std::string token;                        // of a session; empty: none
  std::string payload;                      // as it was sent; empty with kNone
  SigV4Payload payload_mode = SigV4Payload::kNone;
  bool presigned = false;
  int64_t expires_s = 0;  // presigned only
  int64_t signed_at_ms = 0;

  std::string Scope() const;  // "20261116/us-west-2/s3/aws4_request"
};

// Whether the request presents such a signature at all, well-formed or not.
bool HasSigV4(const Request& head);
// Any bytes are fine; faults: kMalformed, kMissingDate.
tl::expected<SigV4Claim, SigV4Error> ParseSigV4(const Request& head);

// Time first, then the signature, compared in constant time. `body_sha256` (hex) is used only if
// the claim has no payload hash. The path is used as sent for "s3", and encoded again for every
// other service.
tl::expected<void, SigV4Error> VerifySigV4(const SigV4Claim& claim, const Request& head,
                                           std::string_view secret, WallTime now,
                                           std::string_view body_sha256 = {});

// The key derived from a secret for one day, region and service: 32 bytes.
std::string SigV4SigningKey(std::string_view secret, const SigV4Claim& claim);
std::string HmacSha256(std::string_view key, std::string_view text);  // 32 bytes

}  // namespace athanor
