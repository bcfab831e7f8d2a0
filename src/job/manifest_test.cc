#include "job/manifest.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/hash.h"

namespace athanor {
namespace {

class TempDir {
 public:
  TempDir() : path_(testing::TempDir() + "athanor-" + RandomHex(8)) {
    EXPECT_TRUE(MakeDirs(path_).ok());
  }
  ~TempDir() { (void)RemoveTree(path_).ok(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

BundleEntry File(std::string path, std::string_view content, bool executable = false) {
  return {std::move(path), BundleEntry::Kind::kFile, executable,
          content.size(),  Sha256Hex(content),       ""};
}
BundleEntry Link(std::string path, std::string target) {
  return {std::move(path), BundleEntry::Kind::kLink, false, 0, "", std::move(target)};
}
BundleEntry Folder(std::string path) {
  return {std::move(path), BundleEntry::Kind::kFolder, false, 0, "", ""};
}

std::string Text(std::vector<BundleEntry> entries) {
  BundleManifest manifest;
  manifest.entries = std::move(entries);
  return WriteManifest(manifest);
}

const std::string kHash(64, 'a');

TEST(Manifest, ReadsBackWhatItWrites) {
  const std::string text = Text(
      {Folder("a"), File("b/100%\n\t\x7f", "x"), File("b/run.sh", "y", true), Link("b/z", "../a")});
  const auto manifest = ReadManifest(text);
  ASSERT_TRUE(manifest.has_value()) << manifest.error().why;
  EXPECT_EQ(manifest->entries.size(), 4u);
  EXPECT_EQ(manifest->bytes, 2u);
  EXPECT_EQ(manifest->entries[1].path, "b/100%\n\t\x7f");
  EXPECT_EQ(WriteManifest(*manifest), text);
  EXPECT_TRUE(manifest->Find("b/run.sh")->executable);
  EXPECT_EQ(manifest->Find("b"), nullptr);
}

TEST(Manifest, HasOneFormOnly) {
  const std::string head = "athanor-bundle 1\n";
  const std::string bad[] = {
      "",
      "athanor-bundle 2\n",
      head + "f\t1\t" + kHash + "\ta",     // cut
      head + "f\t01\t" + kHash + "\ta\n",  // leading zero
      head + "f\t-1\t" + kHash + "\ta\n",
      head + "f\t1\t" + std::string(64, 'A') + "\ta\n",  // upper case
      head + "f\t1\tabc\ta\n",
      head + "f\t1\t" + kHash + "\t%61\n",   // needless escape
      head + "f\t1\t" + kHash + "\ta%0a\n",  // lower-case escape
      head + "f\t1\t" + kHash + "\ta%\n",
      head + "q\ta\n",
      head + "d\ta\tb\n",
      head + "\n",
      head + "d\tb\nd\ta\n",                           // not sorted
      head + "d\ta\nd\ta\n",                           // twice
      head + "f\t99999999999999\t" + kHash + "\ta\n",  // 10^14 bytes
      head + "f\t18446744073709551616\t" + kHash + "\ta\n",
      head + "f\t1000000000000\t" + kHash + "\ta\nf\t1000000000000\t" + kHash + "\tb\n",
  };
  for (const auto& text : bad) {
    const auto manifest = ReadManifest(text);
    ASSERT_FALSE(manifest.has_value()) << text;
    EXPECT_EQ(manifest.error().code, ErrorCode::kCorrupt);
  }
}

TEST(Manifest, RefusesNamesThatLeaveTheFolder) {
  for (const char* name :
       {"/etc/passwd", "../x", "a/../../x", "a/..", ".", "a//b", "a/", "a\\b", ""}) {
    EXPECT_FALSE(ReadManifest(Text({File(name, "x")})).has_value()) << name;
    EXPECT_FALSE(ReadManifest(Text({Folder(name)})).has_value()) << name;
  }
  EXPECT_FALSE(ReadManifest(Text({File(std::string("a\0b", 3), "x")})).has_value());
  EXPECT_FALSE(ReadManifest(Text({File(std::string(5000, 'x'), "x")})).has_value());
}

TEST(Manifest, RefusesLinksThatLeaveTheFolderAlsoByWayOfOthers) {
  const std::pair<const char*, const char*> bad[] = {
      {"l", "/etc"}, {"l", ".."}, {"a/l", "../.."},       {"l", "a/../.."},
      {"l", "a/.."}, {"l", ""},   {"a/b/l", "../../../x"}};
  for (const auto& [path, target] : bad) {
    EXPECT_FALSE(ReadManifest(Text({Link(path, target)})).has_value()) << path << " " << target;
  }
  const std::pair<const char*, const char*> good[] = {
      {"l", "a"}, {"l", "./a/b"}, {"a/l", "../b"}, {"a/b/l", "../../c"}, {"l", "."}, {"a/l", ".."}};
  for (const auto& [path, target] : good) {
    EXPECT_TRUE(ReadManifest(Text({Link(path, target)})).has_value()) << path << " " << target;
  }
}

TEST(Manifest, RefusesEntriesInsideFilesAndLinks) {
  EXPECT_FALSE(
      ReadManifest(Text({File("a", "x"), File("a-b", "x"), File("a/c", "x")})).has_value());
  EXPECT_FALSE(ReadManifest(Text({Link("a", "b"), File("a/c", "x")})).has_value());
  EXPECT_FALSE(ReadManifest(Text({Folder("a"), File("a/c", "x")})).has_value());
}

TEST(Manifest, RefusesAMillionEntries) {
  std::string text = "athanor-bundle 1\n";
  for (int i = 0; i < 1'000'000; ++i) {
    const std::string number = std::to_string(i);
    text += "d\t" + std::string(7 - number.size(), '0') + number + "\n";
  }
  const auto manifest = ReadManifest(text);
  ASSERT_FALSE(manifest.has_value());
  EXPECT_NE(manifest.error().why.find("more than 200000 entries"), std::string::npos);
}

class LayOutTest : public testing::Test {
 protected:
  LayOutTest() {
    EXPECT_TRUE(MakeDirs(blobs_.path()).ok());
    root_ = std::move(*OpenDir(out_.path()));
  }
  std::string Blob(const std::string& content) {
    const std::string name = Sha256Hex(content);
    EXPECT_TRUE(ReplaceFile(blobs_.path() + "/" + name, content).ok());
    return name;
  }
  Status Run(std::vector<BundleEntry> entries) {
    auto manifest = ReadManifest(Text(std::move(entries)));
    if (!manifest) return Fail(manifest.error());
    return LayOut(*manifest, root_.get(), [&](const std::string& sha256) -> Result<UniqueFd> {
      UniqueFd fd(::open((blobs_.path() + "/" + sha256).c_str(), O_RDONLY | O_CLOEXEC));
      if (!fd) return FailErrno("open blob", errno);
      return fd;
    });
  }

  TempDir blobs_;
  TempDir out_;
  UniqueFd root_;
};

TEST_F(LayOutTest, MakesFilesLinksFoldersAndModes) {
  Blob("x");
  Blob("#!/bin/sh\n");
  ASSERT_TRUE(Run({File("a/b/c.py", "x"), File("a/run.sh", "#!/bin/sh\n", true), Folder("empty/er"),
                   Link("link", "a/b/c.py"), File("same", "x")})
                  .ok());
  EXPECT_EQ(*ReadFile(out_.path() + "/link"), "x");
  EXPECT_EQ(*ReadFile(out_.path() + "/same"), "x");
  struct stat info {};
  ASSERT_EQ(::stat((out_.path() + "/a/run.sh").c_str(), &info), 0);
  EXPECT_NE(info.st_mode & 0100, 0u);
  ASSERT_EQ(::stat((out_.path() + "/a/b/c.py").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0111, 0u);
  ASSERT_EQ(::stat((out_.path() + "/empty/er").c_str(), &info), 0);
  EXPECT_TRUE(S_ISDIR(info.st_mode));
}

TEST_F(LayOutTest, NoticesADamagedBlob) {
  const std::string name = Blob("content");
  ASSERT_TRUE(ReplaceFile(blobs_.path() + "/" + name, "cOntent").ok());
  const Status damaged = Run({File("a", "content")});
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
  ASSERT_TRUE(ReplaceFile(blobs_.path() + "/" + name, "content and a bomb").ok());
  EXPECT_EQ(Run({File("b", "content")}).error().code, ErrorCode::kCorrupt);
}

TEST_F(LayOutTest, SaysWhichBlobIsMissing) {
  const Status missing = Run({File("a", "never stored")});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

// Someone else writes into the folder meanwhile: nothing is written through their link.
TEST_F(LayOutTest, DoesNotWriteThroughALinkThatIsInTheWay) {
  Blob("x");
  TempDir elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (out_.path() + "/a").c_str()), 0);
  EXPECT_FALSE(Run({File("a/b", "x")}).ok());
  ASSERT_EQ(::symlink((elsewhere.path() + "/f").c_str(), (out_.path() + "/f").c_str()), 0);
  EXPECT_FALSE(Run({File("f", "x")}).ok());
  EXPECT_TRUE(ListDir(elsewhere.path())->empty());
}

}  // namespace
}  // namespace athanor
