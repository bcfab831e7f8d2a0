#include "job/object_uri.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(ObjectUri, ReadsBucketAndKey) {
  const auto uri = ObjectUri::Parse("s3://bucket/a/b c");
  ASSERT_TRUE(uri);
  EXPECT_EQ(uri->bucket, "bucket");
  EXPECT_EQ(uri->key, "a/b c");
  EXPECT_EQ(uri->ToString(), "s3://bucket/a/b c");
}

TEST(ObjectUri, ABucketAloneHasAnEmptyKey) {
  EXPECT_EQ(ObjectUri::Parse("s3://bucket")->key, "");
  EXPECT_EQ(ObjectUri::Parse("s3://bucket/")->key, "");
}

TEST(ObjectUri, RefusesEverythingElse) {
  for (const char* text : {"", "s3:/b/k", "s3://", "s3:///k", "http://b/k", "/b/k", "S3//b"}) {
    EXPECT_FALSE(ObjectUri::Parse(text)) << text;
  }
}

TEST(ObjectUri, JoinsWithOneSlash) {
  const ObjectUri root{"b", ""};
  EXPECT_EQ((root / "x").ToString(), "s3://b/x");
  EXPECT_EQ((ObjectUri{"b", "p"} / "x").ToString(), "s3://b/p/x");
  EXPECT_EQ((ObjectUri{"b", "p/"} / "x").ToString(), "s3://b/p/x");
}

TEST(NameInChannel, IsTheKeyBelowThePrefix) {
  EXPECT_EQ(*NameInChannel("data/train", "data/train/a/b"), "a/b");
  EXPECT_EQ(*NameInChannel("data/train/", "data/train/a/b"), "a/b");
  EXPECT_EQ(*NameInChannel("", "a/b"), "a/b");
}

TEST(NameInChannel, ASingleObjectKeepsItsName) {
  EXPECT_EQ(*NameInChannel("data/x.csv", "data/x.csv"), "x.csv");
  EXPECT_EQ(*NameInChannel("x.csv", "x.csv"), "x.csv");
}

TEST(NameInChannel, APrefixInsideANameLosesItsFolders) {
  EXPECT_EQ(*NameInChannel("data/tr", "data/train/a"), "train/a");
}

TEST(NameInChannel, MarksOfFoldersAreNothing) {
  EXPECT_EQ(*NameInChannel("data/", "data/"), "");
  EXPECT_EQ(*NameInChannel("data", "data/sub/"), "");
}

TEST(NameInChannel, RefusesWhatLeavesTheFolder) {
  EXPECT_FALSE(NameInChannel("data/", "data/../x"));
  EXPECT_FALSE(NameInChannel("data/", "data/a//b"));
  EXPECT_FALSE(NameInChannel("data", "data//b"));
}

}  // namespace
}  // namespace athanor
