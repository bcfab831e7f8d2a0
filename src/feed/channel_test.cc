#include "feed/channel.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/io/files.h"

namespace athanor {
namespace {

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/channel-XXXXXX";
    root_ = ::mkdtemp(name);
    ASSERT_TRUE(MakeDirs(root_ + "/from/deep/er"));
    ASSERT_TRUE(ReplaceFile(root_ + "/from/a.bin", std::string(3'000'000, 'x')));
    ASSERT_TRUE(ReplaceFile(root_ + "/from/deep/er/b.txt", "b"));
    ASSERT_EQ(::symlink("a.bin", (root_ + "/from/link").c_str()), 0);
  }
  void TearDown() override { ASSERT_TRUE(RemoveTree(root_)); }
  std::string root_;
};

TEST_F(ChannelTest, CopiesATreeSoThatWritingToTheCopyLeavesTheSourceAlone) {
  auto use = CopyChannel(root_ + "/from", root_ + "/to");
  ASSERT_TRUE(use) << use.error().what;
  EXPECT_EQ(use->files, 2u);
  EXPECT_EQ(use->bytes, 3'000'001u);
  ASSERT_TRUE(ReplaceFile(root_ + "/to/a.bin", "changed"));
  EXPECT_EQ(ReadFile(root_ + "/from/a.bin")->size(), 3'000'000u);
  EXPECT_EQ(*ReadFile(root_ + "/to/deep/er/b.txt"), "b");
}

TEST_F(ChannelTest, ASingleFileBecomesAFolderWithThatFile) {
  ASSERT_TRUE(CopyChannel(root_ + "/from/a.bin", root_ + "/one"));
  EXPECT_EQ(ReadFile(root_ + "/one/a.bin")->size(), 3'000'000u);
}

TEST_F(ChannelTest, AMissingSourceIsNamed) {
  auto use = CopyChannel(root_ + "/nowhere", root_ + "/to");
  ASSERT_FALSE(use);
  EXPECT_EQ(use.error().code, ErrorCode::kNotFound);
  EXPECT_NE(use.error().what.find("/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace athanor
