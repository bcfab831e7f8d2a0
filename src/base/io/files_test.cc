#include "base/io/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "base/io/test_dir.h"

namespace athanor {
namespace {

TEST(Files, WriteFileAtomicReplacesAndLeavesNothingBeside) {
  const TestDir dir;
  ASSERT_TRUE(WriteFileAtomic(dir / "f", "one").ok());
  ASSERT_TRUE(WriteFileAtomic(dir / "f", "two", 0640).ok());
  ASSERT_TRUE(ReplaceFile(dir / "g", "three").ok());
  EXPECT_EQ(ReadFile(dir / "f"), "two");
  EXPECT_EQ(ListDir(dir.path()), (std::vector<std::string>{"f", "g"}));
  struct stat info {};
  ASSERT_EQ(stat((dir / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST(Files, AFailedReplaceKeepsTheOldAndLeavesNothingBeside) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "taken/x").ok());
  const auto failed = ReplaceFile(dir / "taken", "bytes");
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().what.find("taken"), std::string::npos);
  EXPECT_EQ(ListDir(dir.path()), (std::vector<std::string>{"taken"}));
}

TEST(Files, ReadFileHonoursItsLimitAndNamesThePath) {
  const TestDir dir;
  ASSERT_TRUE(ReplaceFile(dir / "f", std::string(100'000, 'x')).ok());
  EXPECT_EQ(ReadFile(dir / "f", 100'000)->size(), 100'000u);
  const auto over = ReadFile(dir / "f", 99'999);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ErrorCode::kInvalid);
  EXPECT_NE(over.error().what.find(dir / "f"), std::string::npos);
  EXPECT_EQ(ReadFile(dir / "missing").error().code, ErrorCode::kNotFound);
  // Files of /proc report a size of 0.
  EXPECT_FALSE(ReadFile("/proc/self/stat")->empty());
  ASSERT_TRUE(ReplaceFile(dir / "empty", "").ok());
  EXPECT_EQ(ReadFile(dir / "empty", 0), "");
}

TEST(Files, MakeDirsIsRepeatableAndRefusesAFileInTheWay) {
  const TestDir dir;
  EXPECT_TRUE(MakeDirs(dir / "a/b/c").ok());
  EXPECT_TRUE(MakeDirs(dir / "a/b/c/").ok());
  ASSERT_TRUE(ReplaceFile(dir / "file", "").ok());
  EXPECT_FALSE(MakeDirs(dir / "file").ok());
  EXPECT_FALSE(MakeDirs(dir / "file/sub").ok());
  EXPECT_FALSE(MakeDirs("").ok());
}

TEST(Files, RemoveTreeRemovesClosedFoldersButFollowsNoLink) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "keep").ok());
  ASSERT_TRUE(ReplaceFile(dir / "keep/f", "x").ok());
  ASSERT_TRUE(MakeDirs(dir / "gone/closed/inner").ok());
  ASSERT_EQ(symlink((dir / "keep").c_str(), (dir / "gone/link").c_str()), 0);
  ASSERT_EQ(chmod((dir / "gone/closed").c_str(), 0), 0);
  EXPECT_TRUE(RemoveTree(dir / "gone").ok());
  EXPECT_FALSE(Exists(dir / "gone"));
  EXPECT_TRUE(Exists(dir / "keep/f"));
  EXPECT_TRUE(RemoveTree(dir / "gone").ok());
  ASSERT_EQ(symlink((dir / "keep").c_str(), (dir / "link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(dir / "link").ok());
  EXPECT_TRUE(Exists(dir / "keep/f"));
}

TEST(Files, RemoveTreeSurvivesATreeDeeperThanThePathLimit) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "deep").ok());
  auto at = OpenDir(dir / "deep");
  for (int depth = 0; depth < 3'000; ++depth) {
    ASSERT_EQ(mkdirat(at->get(), "folder", 0700), 0);
    at->reset(openat(at->get(), "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(*at);
  }
  EXPECT_TRUE(RemoveTree(dir / "deep").ok());
  EXPECT_FALSE(Exists(dir / "deep"));
}

TEST(Files, CheckRelativeNameKnowsWhatMayNotBe) {
  for (const char* good : {"a", "a/b.c", "...", "..a", "a..", "ü"}) {
    EXPECT_TRUE(CheckRelativeName(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string("a/../b"), std::string(".."),
        std::string("."), std::string("./a"), std::string("a//b"), std::string("a/"),
        std::string("a\\b"), std::string("a\0b", 3), std::string(256, 'x'), [] {
          std::string deep;
          for (int i = 0; i < 2'000; ++i) deep += "ab/";
          return deep + "c";
        }()}) {
    const auto checked = CheckRelativeName(bad);
    ASSERT_FALSE(checked.ok()) << bad;
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(checked.error().why.empty());
  }
}

TEST(Files, OpenBeneathRefusesEveryWayOut) {
  const TestDir outside;
  ASSERT_TRUE(ReplaceFile(outside / "secret", "s").ok());
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "in").ok());
  ASSERT_TRUE(ReplaceFile(dir / "in/f", "inside").ok());
  ASSERT_EQ(symlink(outside.path().c_str(), (dir / "out").c_str()), 0);
  ASSERT_EQ(symlink("in", (dir / "alias").c_str()), 0);
  ASSERT_EQ(symlink("/proc/self/root", (dir / "magic").c_str()), 0);
  const auto root = OpenDir(dir.path());
  ASSERT_TRUE(root);

  const auto file = OpenBeneath(root->get(), "in/f", O_RDONLY);
  ASSERT_TRUE(file);
  EXPECT_EQ(ReadAll(file->get()), "inside");
  EXPECT_EQ(fcntl(file->get(), F_GETFD), FD_CLOEXEC);
  for (const char* link : {"out/secret", "out", "alias/f", "magic/etc/passwd"}) {
    EXPECT_EQ(OpenBeneath(root->get(), link, O_RDONLY).error().code, ErrorCode::kDenied) << link;
  }
  for (const char* bad : {"../x", "/etc/passwd", "in/../in/f"}) {
    EXPECT_EQ(OpenBeneath(root->get(), bad, O_RDONLY).error().code, ErrorCode::kInvalid) << bad;
  }
  EXPECT_EQ(OpenBeneath(root->get(), "none", O_RDONLY).error().code, ErrorCode::kNotFound);
  // Not a separator here: an ordinary name, which does not lead to a parent.
  ASSERT_TRUE(OpenBeneath(root->get(), "..\\up", O_WRONLY | O_CREAT | O_EXCL, 0644));
  EXPECT_TRUE(Exists(dir / "..\\up"));
  ASSERT_TRUE(OpenBeneath(root->get(), "in/new", O_WRONLY | O_CREAT | O_EXCL, 0644));
  EXPECT_TRUE(Exists(dir / "in/new"));
}

TEST(Files, MakeParentsBeneathMakesFoldersButNotThroughLinks) {
  const TestDir outside;
  const TestDir dir;
  const auto root = OpenDir(dir.path());
  ASSERT_TRUE(MakeParentsBeneath(root->get(), "a/b/file").ok());
  ASSERT_TRUE(MakeParentsBeneath(root->get(), "a/b/file").ok());
  EXPECT_TRUE(Exists(dir / "a/b"));
  EXPECT_FALSE(Exists(dir / "a/b/file"));
  EXPECT_TRUE(MakeParentsBeneath(root->get(), "plain").ok());
  ASSERT_EQ(symlink(outside.path().c_str(), (dir / "out").c_str()), 0);
  EXPECT_FALSE(MakeParentsBeneath(root->get(), "out/x/file").ok());
  EXPECT_EQ(ListDir(outside.path()), std::vector<std::string>{});
}

TEST(Files, PathPartsFollowThePosixTools) {
  EXPECT_EQ(JoinPath("a", "b"), "a/b");
  EXPECT_EQ(JoinPath("a/", "/b"), "a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("a", ""), "a");
  EXPECT_EQ(BaseName("/a/b/"), "b");
  EXPECT_EQ(BaseName("/"), "/");
  EXPECT_EQ(BaseName("b"), "b");
  EXPECT_EQ(DirName("/a/b/"), "/a");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(DirName("a"), ".");
  EXPECT_EQ(DirName("a//b"), "a");
}

TEST(Files, FreeBytesKnowsTheDisk) {
  EXPECT_GT(*FreeBytes("/tmp"), 0u);
  EXPECT_FALSE(FreeBytes("/no/such/place"));
}

}  // namespace
}  // namespace athanor
