#include "run/environment/requirements.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

class RequirementsFile : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(MakeDirs(DirName(dir_ / name)).ok());
    ASSERT_TRUE(ReplaceFile(dir_ / name, text).ok());
  }
  Result<Requirements> Read(const std::string& file = "requirements.txt") {
    const auto fd = OpenDir(dir_.path());
    return ReadRequirements(fd->get(), file);
  }
  std::string Text() {
    const auto read = Read();
    return read ? read->text : read.error().what + " " + read.error().why;
  }

  TestDir dir_;
};

TEST_F(RequirementsFile, CommentsAndBlanksDoNotCount) {
  Write("requirements.txt", "numpy==1.24\ntorch>=2 ; python_version > '3.8'\n");
  const auto plain = Text();
  Write("requirements.txt",
        "# what we need\n\n  numpy==1.24   # pinned\r\ntorch>=2 \\\n ; python_version > '3.8'\n");
  EXPECT_EQ(Text(), plain);
  Write("requirements.txt", "numpy==1.25\ntorch>=2 ; python_version > '3.8'\n");
  EXPECT_NE(Text(), plain);
}

TEST_F(RequirementsFile, AHashInsideAWordIsNoComment) {
  Write("requirements.txt", "a @ https://host/a.zip#egg=a\n");
  EXPECT_NE(Text().find("#egg=a"), std::string::npos);
}

TEST_F(RequirementsFile, NamedFilesAreFollowedFromWhereTheyAreNamed) {
  Write("requirements.txt", "-r deps/gpu.txt\n--constraint=deps/pins.txt\n");
  Write("deps/gpu.txt", "-r ../common.txt\ntorch\n-r gpu.txt\n");
  Write("deps/pins.txt", "torch==2.0\n");
  Write("common.txt", "numpy\n");
  const auto before = Text();
  EXPECT_NE(before.find("numpy\n"), std::string::npos);
  Write("common.txt", "numpy<2\n");
  const auto after = Text();
  EXPECT_NE(after, before);
  Write("deps/pins.txt", "torch==2.1\n");
  EXPECT_NE(Text(), after);
}

TEST_F(RequirementsFile, AConstraintIsNotARequirement) {
  Write("a.txt", "numpy\n");
  Write("requirements.txt", "-r a.txt\n");
  const auto required = Text();
  Write("requirements.txt", "-c a.txt\n");
  EXPECT_NE(Text(), required);
}

TEST_F(RequirementsFile, FilesOutsideTheSourceAreRefusedWithTheirPlace) {
  for (const std::string line : {"-r ../other.txt", "-r /etc/hostname", "--requirement=../../x"}) {
    Write("requirements.txt", "numpy\n" + line + "\n");
    const auto read = Read();
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(read.error().where, "requirements.txt:2");
    EXPECT_FALSE(read.error().hint.empty());
  }
  ASSERT_EQ(::symlink("/etc/hostname", (dir_ / "link.txt").c_str()), 0);
  EXPECT_FALSE(Read("link.txt"));
  EXPECT_FALSE(Read("../requirements.txt"));
  EXPECT_FALSE(Read("missing.txt"));
  ASSERT_TRUE(MakeDirs(dir_ / "folder").ok());
  EXPECT_FALSE(Read("folder"));
}

TEST_F(RequirementsFile, InstallingInPlaceIsRefusedButNotFromARepository) {
  Write("requirements.txt", "-e .\n");
  const auto read = Read();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().where, "requirements.txt:1");
  Write("requirements.txt", "-e git+https://host/a.git#egg=a\n");
  EXPECT_TRUE(Read());
}

TEST_F(RequirementsFile, AWheelOfTheSourceCountsByItsContent) {
  Write("requirements.txt", "./wheels/a-1.0-py3-none-any.whl\n");
  Write("wheels/a-1.0-py3-none-any.whl", "one");
  const auto one = Text();
  EXPECT_FALSE(Read()->whole_source);
  Write("wheels/a-1.0-py3-none-any.whl", "two");
  EXPECT_NE(Text(), one);
}

TEST_F(RequirementsFile, AFolderOfTheSourceMakesTheWholeSourceCount) {
  for (const std::string line : {".", "./lib", "lib/sub", "file:lib", "--find-links wheels",
                                 "name @ file:///somewhere/lib"}) {
    Write("requirements.txt", line + "\n");
    const auto read = Read();
    ASSERT_TRUE(read) << line;
    EXPECT_TRUE(read->whole_source) << line;
  }
  Write("requirements.txt", "numpy\nhttps://host/a.whl\n--find-links https://host/wheels\n");
  EXPECT_FALSE(Read()->whole_source);
}

TEST_F(RequirementsFile, CirclesEndAndCrowdsAreRefused) {
  Write("requirements.txt", "-r a.txt\n");
  Write("a.txt", "-r requirements.txt\nnumpy\n");
  EXPECT_TRUE(Read());
  for (int i = 0; i < 100; ++i) {
    Write("n" + std::to_string(i) + ".txt", "-r n" + std::to_string(i + 1) + ".txt\n");
  }
  Write("n100.txt", "numpy\n");
  EXPECT_FALSE(Read("n0.txt"));
  EXPECT_TRUE(Read("n90.txt"));
}

TEST_F(RequirementsFile, OfACondaFileThePipSectionIsFollowed) {
  Write("environment.yml",
        "dependencies:\n  - python=3.11\n  - pip:\n    - -r requirements.txt\n    - tqdm\n");
  Write("requirements.txt", "numpy\n");
  const auto fd = OpenDir(dir_.path());
  const auto before = ReadCondaFile(fd->get(), "environment.yml");
  ASSERT_TRUE(before);
  EXPECT_NE(before->text.find("tqdm"), std::string::npos);
  Write("requirements.txt", "numpy<2\n");
  const auto after = ReadCondaFile(fd->get(), "environment.yml");
  ASSERT_TRUE(after);
  EXPECT_NE(before->text, after->text);
}

}  // namespace
}  // namespace athanor
