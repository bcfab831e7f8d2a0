// The vectors are requests that botocore signed (tools/make_sigv4_vectors.py).
#include "net/aws/sigv4.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/hash.h"
#include "base/text/json.h"
#include "base/text/text.h"
#include "net/http/request_parser.h"

namespace athanor {
namespace {

struct Vector {
  std::string name;
  std::string service;
  Request head;
  std::string body;
  WallTime now;
};

Request Parsed(const std::string& text) {
  RequestParser parser(1 << 20);
  parser.Feed(text, {});
  EXPECT_TRUE(parser.head_done() && !parser.problem()) << text;
  return std::move(parser.request());
}

struct Vectors {
  std::string key;
  std::string secret;
  std::vector<Vector> all;
};

Vectors Load() {
  const auto text = ReadFile(std::string(ATHANOR_NET_TESTDATA) + "/sigv4.json");
  const Json json = ParseJson(text.value()).value();
  Vectors made{json["key"], json["secret"], {}};
  for (const auto& row : json["vectors"]) {
    std::string raw =
        row["method"].get<std::string>() + " " + row["target"].get<std::string>() + " HTTP/1.1\r\n";
    for (const auto& field : row["headers"]) {
      raw += field[0].get<std::string>() + ": " + field[1].get<std::string>() + "\r\n";
    }
    made.all.push_back({row["name"], row["service"], Parsed(raw + "\r\n"), row["body"],
                        WallTime{row["now_ms"].get<int64_t>()}});
  }
  return made;
}

tl::expected<void, SigV4Error> Check(const Vector& vector, const Request& head,
                                     std::string_view secret, WallTime now) {
  auto claim = ParseSigV4(head);
  if (!claim) return tl::unexpected(claim.error());
  return VerifySigV4(*claim, head, secret, now, Sha256Hex(vector.body));
}

SigV4Fault FaultOf(const tl::expected<void, SigV4Error>& verdict) {
  EXPECT_FALSE(verdict);
  return verdict ? SigV4Fault::kMalformed : verdict.error().fault;
}

TEST(SigV4, WhatBotocoreSignsVerifies) {
  const Vectors vectors = Load();
  EXPECT_GE(vectors.all.size(), 15u);
  for (const auto& vector : vectors.all) {
    SCOPED_TRACE(vector.name);
    EXPECT_TRUE(HasSigV4(vector.head));
    const auto claim = ParseSigV4(vector.head);
    ASSERT_TRUE(claim) << claim.error().what;
    EXPECT_EQ(claim->key_id, vectors.key);
    EXPECT_EQ(claim->service, vector.service);
    EXPECT_EQ(claim->region, "us-west-2");
    const auto verdict = Check(vector, vector.head, vectors.secret, vector.now);
    EXPECT_TRUE(verdict) << verdict.error().what;
  }
}

// Planted bug: compare only the first half of the signature.
TEST(SigV4, AnotherSecretOrSignatureDoesNot) {
  const Vectors vectors = Load();
  for (const auto& vector : vectors.all) {
    SCOPED_TRACE(vector.name);
    EXPECT_EQ(FaultOf(Check(vector, vector.head, vectors.secret + "x", vector.now)),
              SigV4Fault::kMismatch);
    auto claim = *ParseSigV4(vector.head);
    for (const size_t at : {size_t{0}, size_t{31}, size_t{63}}) {
      auto changed = claim;
      changed.signature[at] = changed.signature[at] == '0' ? '1' : '0';
      EXPECT_FALSE(
          VerifySigV4(changed, vector.head, vectors.secret, vector.now, Sha256Hex(vector.body)));
    }
  }
}

// Planted bug: leave the query, a header or the method out of the canonical request.
TEST(SigV4, AnythingChangedOnTheWayIsNoticed) {
  const Vectors vectors = Load();
  for (const auto& vector : vectors.all) {
    SCOPED_TRACE(vector.name);
    const auto changed = [&](auto change) {
      Request head = vector.head;
      change(head);
      return FaultOf(Check(vector, head, vectors.secret, vector.now));
    };
    EXPECT_EQ(changed([](Request& r) { r.method = "DELETE"; }), SigV4Fault::kMismatch);
    EXPECT_EQ(changed([](Request& r) { r.raw_path += "x"; }), SigV4Fault::kMismatch);
    EXPECT_EQ(changed([](Request& r) { r.query.emplace_back("acl", ""); }), SigV4Fault::kMismatch);
    EXPECT_EQ(changed([](Request& r) { r.headers.Set("Host", "elsewhere"); }),
              SigV4Fault::kMismatch);
    EXPECT_EQ(changed([](Request& r) { r.headers.Add("x-amz-meta-more", "1"); }),
              SigV4Fault::kUnsignedHeaders);
    EXPECT_EQ(changed([](Request& r) { r.headers.Add("x-amz-copy-source", "b/k"); }),
              SigV4Fault::kUnsignedHeaders);
    const auto claim = *ParseSigV4(vector.head);
    if (claim.payload_mode == SigV4Payload::kNone) {
      EXPECT_FALSE(VerifySigV4(claim, vector.head, vectors.secret, vector.now, Sha256Hex("x")));
    }
  }
}

TEST(SigV4, TimeIsCheckedAndPresignedOnesExpire) {
  const Vectors vectors = Load();
  constexpr int64_t kMinute = 60'000;
  for (const auto& vector : vectors.all) {
    SCOPED_TRACE(vector.name);
    const auto claim = *ParseSigV4(vector.head);
    const auto at = [&](int64_t ms) {
      return Check(vector, vector.head, vectors.secret, WallTime{claim.signed_at_ms + ms});
    };
    EXPECT_TRUE(at(-14 * kMinute));
    EXPECT_EQ(FaultOf(at(-16 * kMinute)), SigV4Fault::kSkewed);
    if (claim.presigned) {
      EXPECT_TRUE(at(claim.expires_s * 1000 - 1));
      EXPECT_EQ(FaultOf(at(claim.expires_s * 1000 + 1)), SigV4Fault::kExpired);
    } else {
      EXPECT_TRUE(at(14 * kMinute));
      EXPECT_EQ(FaultOf(at(16 * kMinute)), SigV4Fault::kSkewed);
    }
  }
}

TEST(SigV4, APathThatIsPlainOnTheWireVerifiesAsTheEncodedOne) {
  const Vectors vectors = Load();
  for (const auto& vector : vectors.all) {
    if (vector.name != "put") continue;
    Request head = vector.head;
    head.raw_path = "/bucket/%6bey";
    EXPECT_TRUE(Check(vector, head, vectors.secret, vector.now));
  }
}

TEST(SigV4, WhatCannotBeReadIsMalformedNotMismatched) {
  const auto fault = [](const std::string& authorization, const std::string& more = "") {
    const Request head = Parsed("GET / HTTP/1.1\r\nHost: a\r\nX-Amz-Date: 20261116T003026Z\r\n" +
                                more + "Authorization: " + authorization + "\r\n\r\n");
    EXPECT_TRUE(HasSigV4(head)) << authorization;
    const auto claim = ParseSigV4(head);
    EXPECT_FALSE(claim) << authorization;
    return claim ? SigV4Fault::kMismatch : claim.error().fault;
  };
  const std::string digest(64, 'a');
  const std::string scope = "Credential=K/20261116/r/s3/aws4_request";
  for (const std::string& text : {
           std::string("AWS4-HMAC-SHA256"),
           std::string("AWS4-HMAC-SHA256 Credential"),
           "AWS4-ECDSA-P256-SHA256 " + scope + ",SignedHeaders=host,Signature=" + digest,
           "AWS4-HMAC-SHA256 " + scope + ",SignedHeaders=host",
           "AWS4-HMAC-SHA256 " + scope + ",SignedHeaders=,Signature=" + digest,
           "AWS4-HMAC-SHA256 " + scope + ",SignedHeaders=host;host,Signature=" + digest,
           "AWS4-HMAC-SHA256 " + scope + ",SignedHeaders=host,Signature=xyz",
           "AWS4-HMAC-SHA256 " + scope + "," + scope + ",SignedHeaders=host,Signature=" + digest,
           "AWS4-HMAC-SHA256 Credential=K/20261116/r/aws4_request,SignedHeaders=host,Signature=" +
               digest,
           "AWS4-HMAC-SHA256 "
           "Credential=K/20261115/r/s3/aws4_request,SignedHeaders=host,Signature=" +
               digest,
       }) {
    EXPECT_EQ(fault(text), SigV4Fault::kMalformed) << text;
  }
  const std::string good = "AWS4-HMAC-SHA256 " + scope + ",SignedHeaders=host,Signature=" + digest;
  EXPECT_EQ(fault(good, "x-amz-content-sha256: STREAMING-NOTHING\r\n"), SigV4Fault::kMalformed);
  const Request undated =
      Parsed("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: " + good + "\r\n\r\n");
  EXPECT_EQ(ParseSigV4(undated).error().fault, SigV4Fault::kMissingDate);
  EXPECT_FALSE(HasSigV4(Parsed("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n")));
}

// RFC 4231, cases 2, 3 and 6: a short key, one of a block's half, one longer than a block.
TEST(SigV4, TheDigestsAreThoseOfTheStandard) {
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(SigV4, HostMustBeSigned) {
  const std::string digest(64, 'a');
  const Request head = Parsed(
      "GET / HTTP/1.1\r\nHost: a\r\nX-Amz-Date: 20261116T003026Z\r\nAuthorization: "
      "AWS4-HMAC-SHA256 Credential=K/20261116/r/s3/aws4_request,SignedHeaders=x-amz-date,"
      "Signature=" +
      digest + "\r\n\r\n");
  const auto claim = ParseSigV4(head);
  ASSERT_TRUE(claim) << claim.error().what;
  EXPECT_EQ(FaultOf(VerifySigV4(*claim, head, "s", WallTime{claim->signed_at_ms})),
            SigV4Fault::kUnsignedHeaders);
}

}  // namespace
}  // namespace athanor
