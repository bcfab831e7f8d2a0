#include "run/agent/outputs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/io/archive.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "link/job_dir.h"
#include "record/objects/member_list.h"
#include "run/job_files_testing.h"

namespace athanor {
namespace {

class OutputsTest : public ::testing::TestWithParam<Reach> {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(MakeDirs(DirName(dir_ / ("ml/" + name))));
    ASSERT_TRUE(ReplaceFile(dir_ / ("ml/" + name), text));
  }
  Result<std::vector<KeptOutput>> Keep() {
    return KeepOutputs(HeldFolder::At(dir_ / "ml").value(), job_.files(), dir_.path());
  }

  TestDir dir_;
  JobFilesAt job_{GetParam()};
};

TEST_P(OutputsTest, FoldersBecomeArchivesThatAreListedWithTheJob) {
  Write("model/weights.pt", SomeBytes(300'000));
  Write("model/config/a.json", "{}");
  Write("output/data/report.txt", "fine");
  const auto kept = Keep();
  ASSERT_TRUE(kept) << kept.error().what;
  ASSERT_EQ(kept->size(), 2u);
  EXPECT_EQ((*kept)[0].output.name, "model.tar.gz");
  EXPECT_EQ((*kept)[0].output.files, 2u);
  EXPECT_EQ((*kept)[1].output.name, "output.tar.gz");
  for (const auto& [output, archive] : *kept) {
    const auto stored = job_.blobs().Read({output.blob, output.bytes});
    ASSERT_TRUE(stored) << stored.error().what;
    struct stat made {};
    struct stat there {};
    ASSERT_EQ(::fstat(archive.get(), &made), 0);
    ASSERT_EQ(::fstat(stored->get(), &there), 0);
    EXPECT_EQ(static_cast<uint64_t>(made.st_size), output.bytes);
    // No byte is copied where the server is.
    EXPECT_EQ(made.st_ino == there.st_ino, job_.is_here());
    EXPECT_TRUE(job_.blobs().Verify(output.blob));
  }
  // Without the archive: by the list alone.
  const TestDir nothing;
  const auto members =
      MembersOf(job_.dir() + "/" + job_dir::kMembers, BlobStore::Open(nothing / "blobs").value(),
                (*kept)[0].output.blob);
  ASSERT_TRUE(members) << members.error().what;
  EXPECT_EQ(*members, (std::vector<PackedMember>{
                          {"config", 0}, {"config/a.json", 2}, {"weights.pt", 300'000}}));
}

TEST_P(OutputsTest, TheSameAgainGivesTheSame) {
  Write("model/weights.pt", "w");
  const auto first = Keep();
  const auto second = Keep();
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)[0].output, (*second)[0].output);
}

TEST_P(OutputsTest, EmptyFoldersGiveNothingAndALinkIsRefused) {
  ASSERT_TRUE(MakeDirs(dir_ / "ml/model"));
  EXPECT_TRUE(Keep()->empty());
  ASSERT_TRUE(MakeDirs(dir_ / "elsewhere"));
  ASSERT_TRUE(ReplaceFile(dir_ / "elsewhere/secret", "s"));
  ASSERT_TRUE(RemoveTree(dir_ / "ml/model"));
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "ml/model").c_str()), 0);
  EXPECT_EQ(Keep().error().code, ErrorCode::kDenied);
}

INSTANTIATE_TEST_SUITE_P(Files, OutputsTest, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

}  // namespace
}  // namespace athanor
