#include "run/checkpoint/restore.h"

#include <gtest/gtest.h>

#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "link/job_dir.h"
#include "run/checkpoint/checkpoint_sync.h"
#include "run/checkpoint/checkpoint_testing.h"
#include "run/checkpoint/folder_scan.h"

namespace athanor {
namespace {

constexpr uint64_t kPart = 10'000;

struct Kept {
  TestDir dir;
  FakeClock clock;
  TestJobFiles job;
  std::unique_ptr<JobFiles> files = job.Open();

  explicit Kept(Reach reach) : job(reach, dir.path(), dir / "files") {}
  RestoreSource Source() const { return {*files, job_dir::kManifests, dir / "files"}; }

  CheckpointStore Store() const {
    return CheckpointStore::Open(dir / "manifests", BlobStore::Open(dir / "parts").value(),
                                 dir / "files")
        .value();
  }
  // Stores what is in files/ now.
  std::string Keep(const std::string& store = "objects") {
    CheckpointSyncOptions options;
    options.dir = HeldFolder::At(dir / "files").value();
    options.part_bytes = kPart;
    options.spec.keep_last = 10;
    options.spec.store = store;
    auto sync = CheckpointSync::Open(options, *files, clock);
    EXPECT_TRUE(sync) << sync.error().what;
    const auto kept = (*sync)->FinalSync(true);
    EXPECT_TRUE(kept && *kept) << (kept ? "nothing was kept" : kept.error().what);
    return kept && *kept ? (*kept)->id : "";
  }
  void DamagePart(const std::string& id, const std::string& file, size_t part) {
    const auto manifest = Store().Load(id).value();
    for (const auto& entry : manifest.files) {
      if (entry.name != file) continue;
      const std::string sha256 = entry.parts.at(part);
      const std::string path = dir / ("parts/" + sha256.substr(0, 2) + "/" + sha256);
      const int fd = ::open(path.c_str(), O_WRONLY);
      ASSERT_EQ(::pwrite(fd, "!", 1, 5), 1);  // the size stays
      ::close(fd);
      return;
    }
    FAIL() << file;
  }
};

std::string Bytes(size_t size, char first) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(first + i % 251 + i / 10'007);
  return bytes;
}

class Restore : public ::testing::TestWithParam<Reach> {};
INSTANTIATE_TEST_SUITE_P(Files, Restore, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

TEST_P(Restore, GivesBackBytesModesTimesAndLinks) {
  Kept kept(GetParam());
  Put(kept.dir / "files/step_3.pt", Bytes(123'456, 'a'));
  Put(kept.dir / "files/deep/er/optimizer.pt", Bytes(10'000, 'b'));
  Put(kept.dir / "files/empty", "");
  ASSERT_EQ(::chmod((kept.dir / "files/empty").c_str(), 0500), 0);
  ASSERT_EQ(::symlink("../step_3.pt", (kept.dir / "files/deep/latest").c_str()), 0);
  EXPECT_EQ(kept.Keep(), "1-1");
  const auto restored = RestoreCheckpoint(kept.Source(), "", kept.dir / "new/place");
  ASSERT_TRUE(restored) << restored.error().what << restored.error().why;
  ASSERT_TRUE(restored->checkpoint);
  EXPECT_EQ(restored->checkpoint->step, 3);
  EXPECT_EQ(restored->checkpoint->files, 4u);
  EXPECT_EQ(TreeOf(kept.dir / "new/place"), TreeOf(kept.dir / "files"));
  const auto old_scan = ScanFolder(*HeldFolder::At(kept.dir / "files")).value();
  const auto new_scan = ScanFolder(*HeldFolder::At(kept.dir / "new/place")).value();
  ASSERT_EQ(old_scan.files.size(), new_scan.files.size());
  for (const auto& [name, file] : old_scan.files) {
    const auto& now = new_scan.files.at(name);
    EXPECT_EQ(now.mode, file.mode) << name;
    EXPECT_EQ(now.stamp.mtime_ns, file.stamp.mtime_ns) << name;
    EXPECT_EQ(now.link, file.link) << name;
  }
}

TEST_P(Restore, NoCheckpointIsAStartFromTheBeginning) {
  Kept kept(GetParam());
  const auto restored = RestoreCheckpoint(kept.Source(), "", kept.dir / "new");
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->checkpoint);
  EXPECT_TRUE(restored->passed_over.empty());
  EXPECT_EQ(RestoreCheckpoint(kept.Source(), "1-1", kept.dir / "new").error().code,
            ErrorCode::kNotFound);
}

TEST_P(Restore, RefusesAFolderThatHoldsSomething) {
  Kept kept(GetParam());
  Put(kept.dir / "files/a.pt", "a");
  kept.Keep();
  const auto refused = RestoreCheckpoint(kept.Source(), "", kept.dir / "files");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(TreeOf(kept.dir / "files").size(), 1u);
}

// Planted bug: the sha256 of a part is not compared.
TEST_P(Restore, FallsBackToAnOlderWholeOneAndSaysSo) {
  Kept kept(GetParam());
  Put(kept.dir / "files/a.pt", Bytes(50'000, 'a'));
  kept.Keep();
  const auto first = TreeOf(kept.dir / "files");
  Put(kept.dir / "files/a.pt", Bytes(50'000, 'q'));
  Put(kept.dir / "files/b.pt", Bytes(30'000, 'r'));
  EXPECT_EQ(kept.Keep(), "1-2");
  kept.DamagePart("1-2", "b.pt", 2);
  const auto restored = RestoreCheckpoint(kept.Source(), "", kept.dir / "new");
  ASSERT_TRUE(restored) << restored.error().what;
  EXPECT_EQ(restored->checkpoint->id, "1-1");
  ASSERT_EQ(restored->passed_over.size(), 1u);
  EXPECT_EQ(restored->passed_over[0].id, "1-2");
  EXPECT_NE(restored->passed_over[0].error.what.find("b.pt"), std::string::npos);
  EXPECT_EQ(TreeOf(kept.dir / "new"), first) << "nothing of the damaged one may stay";
}

TEST_P(Restore, AnAskedForOneThatIsDamagedIsAnErrorThatNamesTheFile) {
  Kept kept(GetParam());
  Put(kept.dir / "files/a.pt", "older");
  kept.Keep();
  Put(kept.dir / "files/a.pt", Bytes(50'000, 'a'));
  kept.Keep();
  kept.DamagePart("1-2", "a.pt", 0);
  const auto refused = RestoreCheckpoint(kept.Source(), "1-2", kept.dir / "new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(refused.error().what.find("a.pt"), std::string::npos);
  EXPECT_FALSE(refused.error().why.empty());
  EXPECT_FALSE(refused.error().hint.empty());
  EXPECT_TRUE(TreeOf(kept.dir / "new").empty());
  EXPECT_TRUE(RestoreCheckpoint(kept.Source(), "1-1", kept.dir / "new"));
}

TEST_P(Restore, NothingWholeIsToldAndStartsFromTheBeginning) {
  Kept kept(GetParam());
  Put(kept.dir / "files/a.pt", "0123456789");
  kept.Keep();
  kept.DamagePart("1-1", "a.pt", 0);
  const auto restored = RestoreCheckpoint(kept.Source(), "", kept.dir / "new");
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->checkpoint);
  EXPECT_EQ(restored->passed_over.size(), 1u);
}

TEST_P(Restore, SharedCheckpointsAreCheckedInPlace) {
  Kept kept(GetParam());
  Put(kept.dir / "files/step_1.pt", Bytes(50'000, 'a'));
  kept.Keep("shared");
  Put(kept.dir / "files/step_2.pt", Bytes(50'000, 'b'));
  kept.Keep("shared");
  EXPECT_TRUE(ListDir(kept.dir / "parts/tmp").value().empty());
  size_t parts = 0;
  ASSERT_TRUE(kept.Store().parts().ForEach([&](const BlobRef&) { ++parts; }).ok());
  EXPECT_EQ(parts, 0u);
  const auto whole = RestoreCheckpoint(kept.Source(), "", kept.dir / "files");
  ASSERT_TRUE(whole) << whole.error().what;
  EXPECT_EQ(whole->checkpoint->id, "1-2");
  const int fd = ::open((kept.dir / "files/step_2.pt").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "!!", 2, 40'000), 2);
  ::close(fd);
  const auto older = RestoreCheckpoint(kept.Source(), "", kept.dir / "files");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->checkpoint->id, "1-1");
  EXPECT_EQ(older->passed_over.size(), 1u);
  EXPECT_EQ(TreeOf(kept.dir / "files").size(), 2u) << "shared files are never removed";
}

// Planted bug: opening the folder by path: the files are written where the link leads.
TEST_P(Restore, FollowsNoLinkInTheFoldersPlace) {
  Kept kept(GetParam());
  ASSERT_TRUE(MakeDirs(kept.dir / "files").ok());
  ASSERT_TRUE(ReplaceFile(kept.dir / "files/a.pt", "weights").ok());
  kept.Keep();
  ASSERT_TRUE(MakeDirs(kept.dir / "server").ok());
  ASSERT_EQ(::symlink((kept.dir / "server").c_str(), (kept.dir / "place").c_str()), 0);
  const auto restored = RestoreCheckpoint(kept.Source(), "", kept.dir / "place");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kDenied);
  EXPECT_TRUE(ListDir(kept.dir / "server")->empty());
}

// Planted bugs: the parts of the other job are looked for among this one's; its manifests are.
TEST_P(Restore, TheCheckpointOfAnEarlierJobIsReadFromThere) {
  Kept kept(GetParam());
  Put(kept.dir / "files/step_3.pt", Bytes(50'000, 'a'));
  kept.Keep();
  ASSERT_TRUE(MakeDirs(kept.dir / "earlier").ok());
  for (const char* name : {"manifests", "parts"}) {
    ASSERT_EQ(::rename((kept.dir / name).c_str(), (kept.dir / "earlier/" + name).c_str()), 0);
  }
  EXPECT_FALSE(RestoreCheckpoint(kept.Source(), "", kept.dir / "new")->checkpoint);
  const RestoreSource earlier{*kept.files, job_dir::kEarlierManifests};
  for (const char* id : {"", "1-1"}) {
    ASSERT_TRUE(RemoveTree(kept.dir / "new").ok());
    const auto restored = RestoreCheckpoint(earlier, id, kept.dir / "new");
    ASSERT_TRUE(restored) << restored.error().what;
    EXPECT_EQ(restored->checkpoint->step, 3);
    EXPECT_EQ(TreeOf(kept.dir / "new"), TreeOf(kept.dir / "files"));
  }
}

// Planted bug: a manifest or a part that could not be fetched counts as damaged.
TEST(RestoreFromAServer, ThatItIsAwayIsNotTakenForNoCheckpoint) {
  Kept kept(Reach::kServer);
  Put(kept.dir / "files/step_3.pt", Bytes(50'000, 'a'));
  kept.Keep();
  auto options = kept.job.server()->Tls();
  options.patience = Millis(1);
  const auto hasty = RemoteJobFiles::Open(options).value();
  kept.job.Break();
  const auto unknown = RestoreCheckpoint({*hasty, job_dir::kManifests}, "", kept.dir / "new");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnavailable);
  // By itself it asks until the server is back.
  int pauses = 0;
  options.patience = Millis(0);
  options.pause = [&](Millis) {
    if (++pauses == 20) kept.job.Mend();
    return true;
  };
  const auto patient = RemoteJobFiles::Open(options).value();
  const auto restored = RestoreCheckpoint({*patient, job_dir::kManifests}, "", kept.dir / "new");
  ASSERT_TRUE(restored) << restored.error().what;
  EXPECT_EQ(restored->checkpoint->step, 3);
  EXPECT_GE(pauses, 20);
  EXPECT_EQ(TreeOf(kept.dir / "new"), TreeOf(kept.dir / "files"));
}

// It goes when the manifest is read, and the parts are not. Planted bug: the error of one part is
// called damage.
TEST(RestoreFromAServer, ThatItGoesInTheMiddleIsNotTakenForDamage) {
  Kept kept(Reach::kServer);
  Put(kept.dir / "files/step_3.pt", Bytes(50'000, 'a'));
  kept.Keep();
  auto options = kept.job.server()->Tls();
  options.patience = Millis(1);
  const auto files = RemoteJobFiles::Open(options).value();
  kept.job.server()->AnswerBusyAfter(3);  // the names of manifests, the newest, and what it names
  const auto restored = RestoreCheckpoint({*files, job_dir::kManifests}, "", kept.dir / "new");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(restored.error().what.find("damaged"), std::string::npos) << restored.error().what;
  EXPECT_TRUE(Exists(kept.dir / "new"));
  EXPECT_TRUE(TreeOf(kept.dir / "new").empty());
}

}  // namespace
}  // namespace athanor
