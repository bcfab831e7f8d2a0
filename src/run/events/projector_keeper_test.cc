#include "run/events/projector_keeper.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "eventfile/projector.h"
#include "run/job_files_testing.h"

namespace athanor {
namespace {

std::string Entry(const std::string& step) {
  return "embeddings {\n  tensor_name: \"points:" + step + "\"\n  tensor_path: \"" + step +
         "/tensors.tsv\"\n}\n";
}

class ProjectorKeeperTest : public ::testing::TestWithParam<Reach> {
 protected:
  void Table(const std::string& step, const std::string& text) {
    ASSERT_TRUE(MakeDirs(dir_ / ("ml/runs/" + step)).ok());
    ASSERT_TRUE(ReplaceFile(dir_ / ("ml/runs/" + step + "/tensors.tsv"), text).ok());
  }
  void Config(const std::string& text) {
    ASSERT_TRUE(MakeDirs(dir_ / "ml/runs").ok());
    ASSERT_TRUE(ReplaceFile(dir_ / "ml/runs/projector_config.pbtxt", text).ok());
  }
  Status Keep() {
    return keeper_.Keep(OpenDir(dir_ / "ml")->get(), "runs/projector_config.pbtxt", "sub");
  }

  std::string Events() const { return job_.dir() + "/events"; }

  TestDir dir_;
  ExitGate gate_;
  JobFilesAt job_{GetParam()};
  ProjectorKeeper keeper_{
      {job_.files(), "events", job_.is_here() ? Events() : std::string(), dir_.path()}, gate_};
};

TEST_P(ProjectorKeeperTest, KeepsWhatTheConfigNamesAlsoWhenTheScriptRemovesIt) {
  Table("2", "1\t2\n3\t4\n");
  Config(Entry("2"));
  ASSERT_TRUE(Keep().ok());
  ::unlink((dir_ / "ml/runs/2/tensors.tsv").c_str());
  const auto found = FindEmbeddings(Events());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "sub/points");
  const auto rows = ReadEmbedding(Events(), found[0], 100);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->values, (std::vector<double>{1, 2, 3, 4}));
}

TEST_P(ProjectorKeeperTest, TakesATableThatComesAfterItsName) {
  Config(Entry("2"));
  ASSERT_TRUE(Keep().ok());
  EXPECT_TRUE(FindEmbeddings(Events()).empty());
  Table("2", "1\t2\n");
  ASSERT_TRUE(Keep().ok());
  EXPECT_EQ(FindEmbeddings(Events()).size(), 1u);
}

TEST_P(ProjectorKeeperTest, FollowsAConfigThatGrowsAndATableThatIsWrittenAgain) {
  Table("2", "1\t2\n");
  Config(Entry("2"));
  ASSERT_TRUE(Keep().ok());
  Table("2", "5\t6\n");
  Table("3", "7\t8\n");
  Config(Entry("2") + Entry("3"));
  ASSERT_TRUE(Keep().ok());
  const auto found = FindEmbeddings(Events());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(ReadEmbedding(Events(), found[0], 100)->values, (std::vector<double>{5, 6}));
  EXPECT_EQ(found[1].step, 3);
}

TEST_P(ProjectorKeeperTest, FollowsNoLink) {
  ASSERT_TRUE(MakeDirs(dir_ / "ml/runs/2").ok());
  ASSERT_TRUE(ReplaceFile(dir_ / "secret", "1\t2\n").ok());
  ASSERT_EQ(::symlink((dir_ / "secret").c_str(), (dir_ / "ml/runs/2/tensors.tsv").c_str()), 0);
  Config(Entry("2"));
  ASSERT_TRUE(Keep().ok());
  EXPECT_TRUE(FindEmbeddings(Events()).empty());
}

TEST_P(ProjectorKeeperTest, NumbersAreNotCopiedWhereTheServerIsHere) {
  Table("2", "1\t2\n");
  Config(Entry("2"));
  ASSERT_TRUE(Keep().ok());
  struct stat written {};
  struct stat kept {};
  ASSERT_EQ(::stat((dir_ / "ml/runs/2/tensors.tsv").c_str(), &written), 0);
  ASSERT_EQ(::stat((Events() + "/sub/2/tensors.tsv").c_str(), &kept), 0);
  EXPECT_EQ(written.st_ino == kept.st_ino, job_.is_here());
}

// Planted bug: storing everything again at each look while one table is missing.
TEST_P(ProjectorKeeperTest, WhatIsStoredDoesNotTravelAgainWhileATableIsMissing) {
  Table("2", "1\t2\n");
  Config(Entry("2") + Entry("3"));
  ASSERT_TRUE(Keep().ok());
  const int before = job_.is_here() ? 0 : job_.server().requests();
  ASSERT_TRUE(Keep().ok());
  EXPECT_EQ(job_.is_here() ? 0 : job_.server().requests(), before);
}

INSTANTIATE_TEST_SUITE_P(Files, ProjectorKeeperTest,
                         ::testing::Values(Reach::kHere, Reach::kServer), NameOfReach);

}  // namespace
}  // namespace athanor
