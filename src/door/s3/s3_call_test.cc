#include "door/s3/s3_call.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(S3Path, IsSplitAtTheFirstSlashAndDecodedOnce) {
  const auto split = [](std::string_view raw) {
    const auto path = SplitS3Path(raw);
    return path ? path->bucket + "|" + path->key : std::string("refused");
  };
  EXPECT_EQ(split("/"), "|");
  EXPECT_EQ(split("/b"), "b|");
  EXPECT_EQ(split("/b/"), "b|");
  EXPECT_EQ(split("/b/k"), "b|k");
  EXPECT_EQ(split("/b//k/"), "b|/k/");
  EXPECT_EQ(split("/b/../../etc/passwd"), "b|../../etc/passwd");
  EXPECT_EQ(split("/b/a%2Fb%252F%20+"), "b|a/b%2F +");
  EXPECT_EQ(split("/b/%"), "refused");
  EXPECT_EQ(split("/%zz/k"), "refused");
  EXPECT_EQ(split(""), "refused");
  EXPECT_EQ(split("*"), "refused");
  EXPECT_EQ(SplitS3Path("/b/a%00b")->key, std::string("a\0b", 3));
}

TEST(S3Dates, ReadBackAsTheyWereWritten) {
  const WallTime time{1'794'789'026'000};
  EXPECT_EQ(HttpDate(time), "Mon, 16 Nov 2026 00:30:26 GMT");
  EXPECT_EQ(ParseHttpDate(HttpDate(time)), time);
  EXPECT_EQ(ParseHttpDate("yesterday"), std::nullopt);
  EXPECT_EQ(ParseHttpDate(""), std::nullopt);
}

TEST(S3Etags, ComeWithAndWithoutQuotes) {
  EXPECT_EQ(Unquoted(" \"abc\" "), "abc");
  EXPECT_EQ(Unquoted("W/\"abc\""), "abc");
  EXPECT_EQ(Unquoted("abc"), "abc");
  EXPECT_EQ(Unquoted("\""), "\"");
}

TEST(S3Headers, WhatDescribesAnObjectIsKeptAndTheRestIsNot) {
  Request request;
  request.headers = {{"Content-Type", "a/b"},         {"X-Amz-Meta-Note", "one"},
                     {"x-amz-meta-note", "two"},      {"Content-Encoding", "aws-chunked,gzip"},
                     {"x-amz-tagging", "k=v%20w&e="}, {"User-Agent", "x"}};
  const auto meta = MetaOf(request);
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->headers, (std::map<std::string, std::string>{{"content-type", "a/b"},
                                                               {"content-encoding", "gzip"}}));
  EXPECT_EQ(meta->user, (std::map<std::string, std::string>{{"note", "one,two"}}));
  EXPECT_EQ(meta->tags, (std::map<std::string, std::string>{{"k", "v w"}, {"e", ""}}));
  request.headers.Add("x-amz-meta-large", std::string(9000, 'x'));
  EXPECT_EQ(MetaOf(request).error().code, "MetadataTooLarge");
}

TEST(S3Headers, WhatCannotBeDoneIsRefused) {
  const auto code = [](std::string name, std::string value) {
    Request request;
    request.headers.Add(std::move(name), std::move(value));
    const auto refused = RefuseUnsupported(request);
    return refused ? refused->code : std::string();
  };
  EXPECT_EQ(code("x-amz-acl", "public-read"), "AccessControlListNotSupported");
  EXPECT_EQ(code("x-amz-acl", "private"), "");
  EXPECT_EQ(code("x-amz-server-side-encryption", "aws:kms"), "");
  EXPECT_EQ(code("x-amz-server-side-encryption-customer-key", "x"), "NotImplemented");
  EXPECT_EQ(code("x-amz-expected-bucket-owner", "111122223333"), "AccessDenied");
  EXPECT_EQ(code("x-amz-expected-bucket-owner", kAwsAccount), "");
}

}  // namespace
}  // namespace athanor
