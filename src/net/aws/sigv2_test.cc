#include "net/aws/sigv2.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr char kSecret[] = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

Request Get(std::string path, std::string query) {
  Request request;
  request.method = "GET";
  request.raw_path = std::move(path);
  request.raw_query = std::move(query);
  request.query = ParseQuery(request.raw_query).value();
  request.headers.Add("Host", "127.0.0.1:7070");
  return request;
}

std::string Outcome(const Request& request, int64_t now_s, std::string_view secret = kSecret) {
  const auto claim = ParseSigV2(request, "us-west-2");
  if (!claim) return "parse: " + claim.error().what;
  const auto right = VerifySigV2(*claim, request, secret, WallTime{now_s * 1000});
  if (right) return "right";
  switch (right.error().fault) {
    case SigV4Fault::kExpired:
      return "expired";
    case SigV4Fault::kMismatch:
      return "mismatch";
    case SigV4Fault::kUnsignedHeaders:
      return "unsigned";
    case SigV4Fault::kMalformed:
    case SigV4Fault::kMissingDate:
    case SigV4Fault::kSkewed:
      break;
  }
  return "other";
}

// Made by botocore 1.29.27 with AKIDEXAMPLE and kSecret, expiring at 2000000000.
constexpr char kPath[] = "/bucket/pre%20signed/%C3%A9";
constexpr char kPlain[] =
    "AWSAccessKeyId=AKIDEXAMPLE&Signature=SybAIso05hpeZ8kVYwclxYom5uQ%3D&Expires=2000000000";
constexpr char kTyped[] =
    "response-content-type=text%2Fplain&versionId=null&AWSAccessKeyId=AKIDEXAMPLE&Signature="
    "lGxLeso0odrOMMT5OVsviJsexKA%3D&content-type=a%2Fb&Expires=2000000000";

TEST(SigV2, AUrlOfBotocoreIsRight) {
  EXPECT_EQ(Outcome(Get(kPath, kPlain), 1'999'999'999), "right");
  EXPECT_EQ(Outcome(Get(kPath, kTyped), 1'999'999'999), "right");
}

TEST(SigV2, TimeSecretMethodPathAndParametersAllCount) {
  EXPECT_EQ(Outcome(Get(kPath, kPlain), 2'000'000'001), "expired");
  EXPECT_EQ(Outcome(Get(kPath, kPlain), 1'999'999'999, "another"), "mismatch");
  EXPECT_EQ(Outcome(Get("/bucket/other", kPlain), 1'999'999'999), "mismatch");
  EXPECT_EQ(Outcome(Get(kPath, std::string(kPlain) + "&acl"), 1'999'999'999), "mismatch");
  EXPECT_EQ(Outcome(Get(kPath, std::string(kPlain) + "&prefix=x"), 1'999'999'999), "unsigned");
  auto request = Get(kPath, kPlain);
  request.method = "DELETE";
  EXPECT_EQ(Outcome(request, 1'999'999'999), "mismatch");
  request = Get(kPath, kPlain);
  request.headers.Add("x-amz-copy-source", "/a/b");
  EXPECT_EQ(Outcome(request, 1'999'999'999), "mismatch");
}

TEST(SigV2, WhatIsGivenTwiceOrNotAtAllIsRefused) {
  EXPECT_NE(Outcome(Get(kPath, std::string(kPlain) + "&Expires=1"), 0), "right");
  EXPECT_NE(Outcome(Get(kPath, "AWSAccessKeyId=a&Signature=b"), 0), "right");
  EXPECT_NE(Outcome(Get(kPath, "AWSAccessKeyId=a&Signature=b&Expires=x"), 0), "right");
}

}  // namespace
}  // namespace athanor
