#include "base/io/held_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

class HeldFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeDirs(dir_ / "attempt/ml/model").ok());
    ASSERT_TRUE(MakeDirs(dir_ / "server").ok());
    ASSERT_TRUE(ReplaceFile(dir_ / "server/key", "canary").ok());
    held_ = HeldFolder::At(dir_ / "attempt/ml").value();
  }
  ErrorCode CodeOf(const HeldFolder& folder) {
    const auto opened = folder.Open();
    return opened ? ErrorCode::kBug : opened.error().code;
  }

  TestDir dir_;
  HeldFolder held_;
};

TEST_F(HeldFolderTest, OpensWhatIsThereNow) {
  EXPECT_TRUE(held_.Open());
  EXPECT_TRUE((held_ / "model").Open());
  // A script may well create its folder again.
  ASSERT_TRUE(RemoveTree(dir_ / "attempt/ml/model").ok());
  EXPECT_EQ(CodeOf(held_ / "model"), ErrorCode::kNotFound);
  ASSERT_TRUE(MakeDirs(dir_ / "attempt/ml/model/new").ok());
  EXPECT_EQ(ListDirAt((held_ / "model").Open()->get()).value(), std::vector<std::string>{"new"});
}

// Planted bug: opening the joined path.
TEST_F(HeldFolderTest, FollowsNoLinkWhateverPartOfTheNameBecomesOne) {
  ASSERT_TRUE(RemoveTree(dir_ / "attempt/ml/model").ok());
  ASSERT_EQ(::symlink((dir_ / "server").c_str(), (dir_ / "attempt/ml/model").c_str()), 0);
  EXPECT_EQ(CodeOf(held_ / "model"), ErrorCode::kDenied);
  EXPECT_EQ(CodeOf(held_ / "model/deeper"), ErrorCode::kDenied);
  EXPECT_FALSE((held_ / "model/made").Make());
  ASSERT_TRUE(RemoveTree(dir_ / "attempt/ml").ok());
  ASSERT_EQ(::symlink((dir_ / "server").c_str(), (dir_ / "attempt/ml").c_str()), 0);
  EXPECT_EQ(CodeOf(held_), ErrorCode::kDenied);
  EXPECT_EQ(ListDir(dir_ / "server").value(), std::vector<std::string>{"key"});
}

// Planted bug: keeping the parent by name.
TEST_F(HeldFolderTest, StaysWithItsPlaceWhenThatIsRenamedAndReplaced) {
  ASSERT_EQ(std::rename((dir_ / "attempt").c_str(), (dir_ / "away").c_str()), 0);
  ASSERT_TRUE(MakeDirs(dir_ / "elsewhere/ml/other").ok());
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "attempt").c_str()), 0);
  EXPECT_EQ(ListDirAt(held_.Open()->get()).value(), std::vector<std::string>{"model"});
}

TEST_F(HeldFolderTest, RefusesNamesThatLeaveIt) {
  EXPECT_EQ(CodeOf(held_ / "../../server"), ErrorCode::kInvalid);
  EXPECT_EQ(CodeOf(HeldFolder()), ErrorCode::kNotFound);
}

TEST_F(HeldFolderTest, MakesWhatIsMissing) {
  EXPECT_TRUE((held_ / "a/b/c").Make());
  EXPECT_TRUE(Exists(dir_ / "attempt/ml/a/b/c"));
}

}  // namespace
}  // namespace athanor
