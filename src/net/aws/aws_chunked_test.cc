// The two signed bodies are the examples of AWS's public documentation of the scheme.
#include "net/aws/aws_chunked.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace athanor {
namespace {

struct Decoded {
  Status status;
  std::string bytes;
  Headers trailers;
};

Decoded Decode(SigV4Payload mode, const AwsChunkedDecoder::Seal& seal, std::string_view body,
               size_t step) {
  AwsChunkedDecoder decoder(mode, seal);
  Decoded decoded;
  for (size_t at = 0; at < body.size() && decoded.status.ok(); at += step) {
    decoded.status = decoder.Feed(body.substr(at, step),
                                  [&](std::string_view piece) { decoded.bytes += piece; });
  }
  if (decoded.status.ok()) decoded.status = decoder.Finish();
  decoded.trailers = decoder.trailers();
  return decoded;
}

AwsChunkedDecoder::Seal SealOf(std::string seed) {
  SigV4Claim claim;
  claim.date = "20130524";
  claim.region = "us-east-1";
  claim.service = "s3";
  return {SigV4SigningKey("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", claim), "20130524T000000Z",
          claim.Scope(), std::move(seed)};
}

std::string SignedBody() {
  return "10000;chunk-signature="
         "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n" +
         std::string(65536, 'a') +
         "\r\n400;chunk-signature="
         "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n" +
         std::string(1024, 'a') +
         "\r\n0;chunk-signature="
         "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n";
}
const char kSeed[] = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9";

TEST(AwsChunked, SignedChunksOfTheDocumentationVerify) {
  for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, size_t{1} << 20}) {
    const auto decoded = Decode(SigV4Payload::kSignedChunks, SealOf(kSeed), SignedBody(), step);
    EXPECT_TRUE(decoded.status.ok()) << decoded.status.error().what;
    EXPECT_EQ(decoded.bytes, std::string(66560, 'a'));
  }
}

// Planted bug: skip the comparison for the last, empty chunk, and a body can be cut short.
TEST(AwsChunked, AChangedCutOrMovedChunkIsDenied) {
  const auto code = [](std::string body, std::string seed = kSeed) {
    const auto decoded = Decode(SigV4Payload::kSignedChunks, SealOf(seed), body, 1000);
    EXPECT_FALSE(decoded.status.ok());
    return decoded.status.ok() ? ErrorCode::kBug : decoded.status.error().code;
  };
  auto changed = SignedBody();
  changed[200] = 'b';
  EXPECT_EQ(code(changed), ErrorCode::kDenied);
  changed = SignedBody();
  changed[changed.size() - 6] = changed[changed.size() - 6] == '0' ? '1' : '0';
  EXPECT_EQ(code(changed), ErrorCode::kDenied);
  EXPECT_EQ(code(SignedBody(), std::string(64, '0')), ErrorCode::kDenied);
  const auto body = SignedBody();
  const size_t second = body.find("400;chunk");
  const size_t last = body.find("0;chunk-signature=b6c6");
  EXPECT_EQ(code(body.substr(0, second) + body.substr(last)), ErrorCode::kDenied);
  EXPECT_EQ(code(body.substr(0, last)), ErrorCode::kInvalid);
  EXPECT_EQ(code(body.substr(0, body.size() - 2)), ErrorCode::kInvalid);
  EXPECT_EQ(code(body + "x"), ErrorCode::kInvalid);
}

std::string TrailerBody() {
  return "10000;chunk-signature="
         "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2\r\n" +
         std::string(65536, 'a') +
         "\r\n400;chunk-signature="
         "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7\r\n" +
         std::string(1024, 'a') +
         "\r\n0;chunk-signature="
         "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992\r\n"
         "x-amz-checksum-crc32c:sOO8/Q==\r\n"
         "x-amz-trailer-signature:"
         "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n";
}
const char kTrailerSeed[] = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";

TEST(AwsChunked, SignedTrailersOfTheDocumentationVerify) {
  for (const size_t step : {size_t{1}, size_t{100'000}}) {
    const auto decoded =
        Decode(SigV4Payload::kSignedChunksTrailer, SealOf(kTrailerSeed), TrailerBody(), step);
    EXPECT_TRUE(decoded.status.ok()) << decoded.status.error().what;
    EXPECT_EQ(decoded.trailers.Get("x-amz-checksum-crc32c"), "sOO8/Q==");
  }
  auto changed = ReplaceAll(TrailerBody(), "sOO8", "sOO9");
  EXPECT_EQ(Decode(SigV4Payload::kSignedChunksTrailer, SealOf(kTrailerSeed), changed, 9)
                .status.error()
                .code,
            ErrorCode::kDenied);
}

TEST(AwsChunked, UnsignedChunksWithATrailer) {
  const std::string body = "5\r\nhello\r\n1\r\n!\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n";
  for (size_t step = 1; step <= body.size(); ++step) {
    const auto decoded = Decode(SigV4Payload::kUnsignedChunksTrailer, {}, body, step);
    EXPECT_TRUE(decoded.status.ok());
    EXPECT_EQ(decoded.bytes, "hello!");
    EXPECT_EQ(decoded.trailers.Get("x-amz-checksum-crc32"), "AAAAAA==");
  }
}

TEST(AwsChunked, WhatIsNotThisEncodingIsInvalid) {
  for (const std::string& body :
       {std::string(), std::string("5"), std::string("\r\n"), std::string("g\r\n"),
        std::string("-1\r\n"), std::string("ffffffffffffffffff\r\n"), std::string("5\nhello\r\n"),
        std::string("5\r\nhelloo\r\n0\r\n\r\n"), std::string("0\r\nno colon\r\n\r\n"),
        std::string(100'000, '1'), "0\r\na:" + std::string(100'000, 'b') + "\r\n\r\n"}) {
    const auto decoded = Decode(SigV4Payload::kUnsignedChunksTrailer, {}, body, 50);
    ASSERT_FALSE(decoded.status.ok()) << body.substr(0, 50);
    EXPECT_EQ(decoded.status.error().code, ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace athanor
