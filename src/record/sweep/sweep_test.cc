#include "record/sweep/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "job/manifest.h"
#include "record/backup/backup.h"
#include "record/testing.h"

namespace athanor {
namespace {

constexpr int64_t kHourMs = 3'600'000;

class SweepTest : public ::testing::Test {
 protected:
  SweepTest() {
    EXPECT_TRUE(MakeDirs(layout_.server()).ok());
    database_ = OpenStore(layout_.database());
    jobs_ = std::make_unique<JobStore>(*database_);
  }

  // A blob that was last used so long ago.
  std::string Blob(const std::string& bytes, int64_t age_ms = 2 * kHourMs) {
    const auto sha256 = blobs_.Put(bytes).value().sha256;
    const auto at = (now_.ms - age_ms) / 1000;
    const timespec times[2] = {{at, 0}, {at, 0}};
    const auto path = layout_.blobs() + "/" + sha256.substr(0, 2) + "/" + sha256;
    EXPECT_EQ(0, ::utimensat(AT_FDCWD, path.c_str(), times, 0));
    return sha256;
  }
  Result<Swept> Sweep(std::vector<JobRecord> live = {}, bool dry_run = false) {
    return SweepBlobs(layout_, blobs_, *jobs_, live, {{now_.ms - kHourMs}, dry_run});
  }

  const WallTime now_ = SystemClock().Wall();
  ScratchDir dir_;
  StoreLayout layout_{dir_.path()};
  BlobStore blobs_ = BlobStore::Open(layout_.blobs()).value();
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> jobs_;
};

TEST_F(SweepTest, RemovesWhatNoJobNames) {
  auto job = SampleJob(1);
  job.spec.source.bundle = "";
  job.packages = Blob("packages");
  job.outputs = {{"model.tar.gz", Blob("a model"), 7}};
  ASSERT_TRUE(jobs_->Commit(SubmitOf(job)).ok());
  const auto stray = Blob("nobody's");
  const auto swept = Sweep().value();
  EXPECT_EQ(1u, swept.removed);
  EXPECT_EQ(8u, swept.bytes);
  EXPECT_EQ(2u, swept.kept);
  EXPECT_FALSE(blobs_.Has(stray));
  EXPECT_TRUE(blobs_.Has(job.packages));
  EXPECT_TRUE(blobs_.Has(job.outputs[0].blob));
}

// Planted bug: marking the listing of what a script left, but not what it lists.
TEST_F(SweepTest, KeepsTheFilesOfAListingAndRemovesThemWithTheJob) {
  auto job = SampleJob(1);
  job.spec.source.bundle = "";
  BundleManifest left;
  left.entries.push_back({"model.pt", BundleEntry::Kind::kFile, false, 7, Blob("weights"), ""});
  job.outputs = {{Output::kFiles, Blob(WriteManifest(left)), 7, 1}};
  EXPECT_EQ(0u, Sweep({job}).value().removed) << "a live job's";
  EXPECT_TRUE(blobs_.Has(left.entries[0].sha256));
  EXPECT_EQ(2u, Sweep().value().removed) << "nobody's";
}

// Planted bug: a store that answers "there already" without noting it.
TEST_F(SweepTest, KeepsWhatIsYoungOrWasUsedSince) {
  const auto young = Blob("written a minute ago", 60'000);
  const auto wanted = Blob("old, and about to be named");
  ASSERT_TRUE(blobs_.Use(wanted));
  const auto again = Blob("put twice");
  ASSERT_TRUE(blobs_.Put("put twice"));
  EXPECT_EQ(0u, Sweep().value().removed);
  for (const auto& sha256 : {young, wanted, again}) EXPECT_TRUE(blobs_.Has(sha256));
}

TEST_F(SweepTest, KeepsTheFilesOfASourceAndWhatOnlyMemoryKnows) {
  const auto file = Blob("print(1)");
  BundleManifest manifest;
  manifest.entries.push_back({"train.py", BundleEntry::Kind::kFile, false, 8, file, ""});
  manifest.bytes = 8;
  auto stored = SampleJob(1);
  stored.spec.source.bundle = Blob(WriteManifest(manifest));
  ASSERT_TRUE(jobs_->Commit(SubmitOf(stored)).ok());
  auto live = SampleJob(2);
  live.spec.source.bundle = "";
  live.spec.source.git_diff = Blob("a diff");
  EXPECT_EQ(0u, Sweep({live}).value().removed);
  EXPECT_EQ(1u, Sweep({}, true).value().removed);
  EXPECT_TRUE(blobs_.Has(live.spec.source.git_diff)) << "a dry run removes nothing";
  EXPECT_EQ(1u, Sweep().value().removed);
  EXPECT_TRUE(blobs_.Has(file));
}

TEST_F(SweepTest, AListingThatCannotBeReadStopsItBeforeAnythingGoes) {
  auto job = SampleJob(1);
  job.spec.source.bundle = Blob("no listing");
  ASSERT_TRUE(jobs_->Commit(SubmitOf(job)).ok());
  const auto stray = Blob("stray");
  const auto swept = Sweep();
  ASSERT_FALSE(swept);
  EXPECT_EQ(ErrorCode::kCorrupt, swept.error().code);
  EXPECT_TRUE(blobs_.Has(stray));
}

TEST_F(SweepTest, DoesNotRunBesideABackup) {
  const auto lock = LockBackups(layout_).value();
  EXPECT_EQ(ErrorCode::kConflict, Sweep().error().code);
}

}  // namespace
}  // namespace athanor
