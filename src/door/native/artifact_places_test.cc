#include "door/native/artifact_places.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

std::string Of(const std::string& uri, const std::string& root = "file:///srv/art") {
  const auto place = PlaceOfUri("/home/artifacts", root, uri);
  return place ? place->root + " " + place->path : "none";
}

TEST(ArtifactPlaces, AreTheServersOwnOrBeneathTheRootItWasGiven) {
  EXPECT_EQ(Of("mlflow-artifacts:/0/run/artifacts"), "/home/artifacts 0/run/artifacts");
  EXPECT_EQ(Of("mlflow-artifacts:"), "/home/artifacts ");
  EXPECT_EQ(Of("mlflow-artifacts:/models//a/./b/"), "/home/artifacts models/a/b");
  EXPECT_EQ(Of("file:///srv/art/1/run/artifacts"), "/srv/art 1/run/artifacts");
  EXPECT_EQ(Of("/srv/art/1"), "/srv/art 1");
  EXPECT_EQ(Of("file://localhost/srv/art/a%20b"), "/srv/art a b");
  EXPECT_EQ(Of("/srv/art"), "/srv/art ");
}

// Planted bug: compare the beginning only, so that /srv/artful is beneath /srv/art.
TEST(ArtifactPlaces, OfOthersAreNotShown) {
  for (const char* uri :
       {"file:///etc", "/etc/passwd", "/srv/artful/x", "/srv/art/../x", "file:///srv/art/%2e%2e/x",
        "mlflow-artifacts:/../server", "mlflow-artifacts://other:80/0", "s3://bucket/x",
        "http://host/x", "file://other/srv/art/x", "srv/art/x", ""}) {
    EXPECT_EQ(Of(uri), "none") << uri;
  }
  EXPECT_EQ(Of("file:///srv/art/1", "mlflow-artifacts:"), "none");
  EXPECT_EQ(Of("/srv/art/1", "s3://bucket"), "none");
}

TEST(ArtifactPlaces, ARootIsAUriOrAnAbsolutePath) {
  EXPECT_EQ(ArtifactRootFrom("/srv/art/").value(), "file:///srv/art");
  EXPECT_EQ(ArtifactRootFrom("file:///srv/art").value(), "file:///srv/art");
  EXPECT_EQ(ArtifactRootFrom("s3://bucket/x/").value(), "s3://bucket/x");
  for (const char* bad : {"", "art", "./art", "c:art", "file://other/art", "file:art"}) {
    EXPECT_FALSE(ArtifactRootFrom(bad)) << bad;
  }
}

TEST(ArtifactPlaces, PathsAreMadePlainWithoutTheDisk) {
  EXPECT_EQ(PlainPath("/a/./x/../b//"), "/a/b");
  EXPECT_EQ(PlainPath("/../.."), "/");
  EXPECT_EQ(SchemeOf("S3://b"), "s3");
  EXPECT_EQ(SchemeOf("a/b:c"), "");
  EXPECT_EQ(SchemeOf("my_location"), "");
}

}  // namespace
}  // namespace athanor
