#include "feed/object_channel.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(ObjectManifest, ListsNamesBelowAPrefix) {
  const auto manifest = ParseObjectManifest(R"([{"prefix": "s3://b/p/"}, "a.bin", "x/y"])");
  ASSERT_TRUE(manifest) << manifest.error().what;
  EXPECT_EQ(manifest->prefix, (ObjectUri{"b", "p/"}));
  EXPECT_EQ(manifest->names, (std::vector<std::string>{"a.bin", "x/y"}));
}

TEST(ObjectManifest, RefusesWhatIsNoManifest) {
  for (const char* text : {"", "{}", "[]", R"(["a"])", R"([{"prefix": 1}])",
                           R"([{"prefix": "/tmp"}])", R"([{"prefix": "s3://b/p"}, 3])"}) {
    const auto manifest = ParseObjectManifest(text);
    ASSERT_FALSE(manifest) << text;
    EXPECT_EQ(manifest.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(manifest.error().hint.empty());
  }
}

}  // namespace
}  // namespace athanor
