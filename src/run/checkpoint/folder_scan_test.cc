#include "run/checkpoint/folder_scan.h"

#include <gtest/gtest.h>

#include "base/io/test_dir.h"
#include "run/checkpoint/checkpoint_testing.h"

namespace athanor {
namespace {

std::vector<std::string> NamesOf(const FolderScan& scan) {
  std::vector<std::string> names;
  for (const auto& [name, file] : scan.files) names.push_back(name);
  return names;
}

FileKey KeyOf(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return {info.st_dev, info.st_ino};
}

TEST(FolderScan, FindsFilesInSubfoldersAndPassesOverTemporaries) {
  const TestDir dir;
  for (const char* name : {"a.pt", "deep/er/b.pt", "a.pt.tmp", "x.part", "x.partial", ".a.swp",
                           ".~lock", "a~", "half.tmp/inside.pt", ".hidden"}) {
    Put(dir / name, "12345");
  }
  const auto scan = ScanFolder(*HeldFolder::At(dir.path())).value();
  EXPECT_EQ(NamesOf(scan), (std::vector<std::string>{".hidden", "a.pt", "deep/er/b.pt"}));
  EXPECT_EQ(scan.files.at("a.pt").stamp.size, 5u);
  EXPECT_EQ(scan.files.at("a.pt").mode, 0640u);
  EXPECT_TRUE(scan.left_out.empty());
}

TEST(FolderScan, TakesOnlyLinksThatStayInside) {
  const TestDir dir;
  Put(dir / "sub/a.pt", "x");
  ASSERT_EQ(::symlink("sub/a.pt", (dir / "latest").c_str()), 0);
  ASSERT_EQ(::symlink("../a.pt", (dir / "sub/out").c_str()), 0);  // one up is inside
  ASSERT_EQ(::symlink("../../etc", (dir / "sub/far").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (dir / "absolute").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  const auto scan = ScanFolder(*HeldFolder::At(dir.path())).value();
  EXPECT_EQ(NamesOf(scan), (std::vector<std::string>{"latest", "sub/a.pt", "sub/out"}));
  EXPECT_EQ(scan.files.at("latest").link, "sub/a.pt");
  EXPECT_EQ(scan.left_out.size(), 3u);
}

TEST(FolderScan, AMissingFolderIsEmpty) {
  const TestDir dir;
  EXPECT_TRUE(ScanFolder(*HeldFolder::At(dir / "none")).value().files.empty());
}

TEST(FolderScan, ARewriteWithTheOldTimeIsSeen) {
  const TestDir dir;
  Put(dir / "a.pt", "12345");
  const auto before = ScanFolder(*HeldFolder::At(dir.path()))->files.at("a.pt");
  const int fd = ::open((dir / "a.pt").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "x", 1, 0), 1);
  const timespec times[2] = {
      {before.stamp.mtime_ns / 1'000'000'000, before.stamp.mtime_ns % 1'000'000'000},
      {before.stamp.mtime_ns / 1'000'000'000, before.stamp.mtime_ns % 1'000'000'000}};
  ASSERT_EQ(::futimens(fd, times), 0);
  ::close(fd);
  const auto after = ScanFolder(*HeldFolder::At(dir.path()))->files.at("a.pt");
  EXPECT_EQ(after.stamp.mtime_ns, before.stamp.mtime_ns);
  EXPECT_NE(after.stamp, before.stamp);
}

TEST(OpenForWriting, NamesWhatAnotherProcessMayStillWrite) {
  const TestDir dir;
  for (const char* name : {"read", "written", "both", "mapped", "closed"}) {
    Put(dir / name, "some bytes");
  }
  Puppet child([&](const Puppet::Step& step) {
    (void)!::open((dir / "read").c_str(), O_RDONLY);
    (void)!::open((dir / "written").c_str(), O_WRONLY | O_APPEND);
    (void)!::open((dir / "both").c_str(), O_RDWR);
    ::close(::open((dir / "closed").c_str(), O_WRONLY));
    const int fd = ::open((dir / "mapped").c_str(), O_RDWR);
    if (::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED) ::_exit(1);
    ::close(fd);
    step();
  });
  std::vector<FileKey> all;
  for (const char* name : {"read", "written", "both", "mapped", "closed"}) {
    all.push_back(KeyOf(dir / name));
  }
  std::vector<FileKey> expected{KeyOf(dir / "written"), KeyOf(dir / "both"), KeyOf(dir / "mapped")};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(OpenForWriting(child.pids(), all), expected);
  const int pid = child.pid();
  child.Kill();
  EXPECT_TRUE(OpenForWriting({pid}, all).empty());
}

// Planted bug: opening the folder by path.
TEST(FolderScan, FollowsNoLinkInTheFoldersPlace) {
  TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "server").ok());
  ASSERT_TRUE(ReplaceFile(dir / "server/key", "canary").ok());
  ASSERT_TRUE(MakeDirs(dir / "ml/checkpoints").ok());
  const auto held = HeldFolder::At(dir / "ml").value() / "checkpoints";
  EXPECT_TRUE(ScanFolder(held));
  ASSERT_TRUE(RemoveTree(dir / "ml/checkpoints").ok());
  ASSERT_EQ(::symlink((dir / "server").c_str(), (dir / "ml/checkpoints").c_str()), 0);
  const auto scan = ScanFolder(held);
  ASSERT_FALSE(scan);
  EXPECT_EQ(scan.error().code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace athanor
