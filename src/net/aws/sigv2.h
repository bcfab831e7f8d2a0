// AWS Signature Version 2 in a URL, the server's side: boto3 makes such presigned URLs for
// S3 unless it is told otherwise. Only this form; headers with version 2 are refused by the
// door. Pure: no clock, no key store, no sockets.
//
// Version 2 leaves most of a query unsigned, so a URL with anything in its query that the signature
// does not cover is refused.
#pragma once

#include "base/exec/clock.h"
#include "net/aws/sigv4.h"
#include "net/http/http_types.h"

namespace athanor {

// Whether the request presents such a signature at all, well-formed or not.
bool HasSigV2(const Request& head);
// Whether it is signed with version 2 in a header.
bool HasSigV2Header(const Request& head);

// As a claim of version 4 that is presigned, for S3, and leaves the body out; `region` is what it
// says. Nothing in it is verified yet. Fault: kMalformed.
tl::expected<SigV4Claim, SigV4Error> ParseSigV2(const Request& head, std::string region);

// kExpired, kUnsignedHeaders (something that the signature does not cover), kMismatch.
tl::expected<void, SigV4Error> VerifySigV2(const SigV4Claim& claim, const Request& head,
                                           std::string_view secret, WallTime now);

}  // namespace athanor
