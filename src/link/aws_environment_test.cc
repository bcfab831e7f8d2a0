#include "link/aws_environment.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/json.h"

namespace athanor {
namespace {

TEST(AwsEnvironment, AKeyNamesItsAttemptAndAnotherTokenGivesAnotherSecret) {
  const auto attempt = AttemptId::New();
  const AwsKey key = KeyOfAttempt(attempt, "athjob_1");
  EXPECT_EQ(AttemptOfKey(key.id), attempt);
  EXPECT_EQ(key.secret.size(), 40u);
  EXPECT_EQ(key.secret, KeyOfAttempt(attempt, "athjob_1").secret);
  EXPECT_NE(key.secret, KeyOfAttempt(attempt, "athjob_2").secret);
}

TEST(AwsEnvironment, EachHostOfAnAttemptHasAKeyOfItsOwn) {
  const auto attempt = AttemptId::New();
  const AwsKey first = KeyOfAttempt(attempt, "athjob_1");
  const AwsKey third = KeyOfAttempt(attempt, "athjob_1.2", 2);
  EXPECT_NE(first.id, third.id);
  EXPECT_EQ(AttemptOfKey(third.id), attempt);
  EXPECT_EQ(HostOfKey(first.id), 0u);
  EXPECT_EQ(HostOfKey(third.id), 2u);
  EXPECT_FALSE(AttemptOfKey(third.id + "x"));
  EXPECT_FALSE(AttemptOfKey(first.id + "H"));
  EXPECT_FALSE(AttemptOfKey(first.id + "H02"));
}

TEST(AwsEnvironment, OtherKeysNameNoAttempt) {
  EXPECT_FALSE(AttemptOfKey(""));
  EXPECT_FALSE(AttemptOfKey("ATHJ"));
  EXPECT_FALSE(AttemptOfKey("ATHAABCDEFGHIJKLMNOP"));
  EXPECT_FALSE(AttemptOfKey("ATHJ" + std::string(26, 'U')));
}

TEST(AwsEnvironment, TheRulesLeadEveryServiceHereAndStsNowhereElse) {
  TestDir dir;
  ASSERT_TRUE(WriteAwsOverlay(dir.path(), "http://127.0.0.1:7070").ok());
  const auto rules = [&](const char* below) {
    auto text = ReadFile(dir.path() + "/models/" + below + "/endpoint-rule-set-1.json");
    auto json = ParseJson(text ? *text : "");
    return json ? *json : Json();
  };
  const Json sts = rules("sts/2011-06-15");
  ASSERT_EQ(sts["rules"].size(), 1u);
  EXPECT_EQ(sts["rules"][0]["endpoint"]["url"], "http://127.0.0.1:7070");
  const Json logs = rules("logs/2014-03-28");
  EXPECT_EQ(logs["rules"][0]["endpoint"]["url"], "{Endpoint}");
  EXPECT_EQ(logs["rules"][1]["endpoint"]["url"], "http://127.0.0.1:7070");
  const Json s3 = rules("s3/2006-03-01");
  EXPECT_EQ(s3["rules"][1]["endpoint"]["url"], "http://127.0.0.1:7070/{Bucket}");
}

TEST(AwsEnvironment, TheOverlayFollowsTheServersAddress) {
  TestDir dir;
  ASSERT_TRUE(WriteAwsOverlay(dir.path(), "http://127.0.0.1:1").ok());
  ASSERT_TRUE(WriteAwsOverlay(dir.path(), "http://127.0.0.1:2").ok());
  const auto text = ReadFile(dir.path() + "/models/iam/2010-05-08/endpoint-rule-set-1.json");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->find("127.0.0.1:1\""), std::string::npos);
  EXPECT_NE(text->find("127.0.0.1:2\""), std::string::npos);
}

}  // namespace
}  // namespace athanor
