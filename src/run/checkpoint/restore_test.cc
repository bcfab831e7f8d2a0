#include "run/checkpoint/restore.h"

#include <gtest/gtest.h>

#include "base/io/hash.h"
#include "base/io/test_dir.h"
#include "run/checkpoint/checkpoint_sync.h"
#include "run/checkpoint/checkpoint_testing.h"
#include "run/checkpoint/folder_scan.h"

namespace athanor {
namespace {

constexpr uint64_t kPart = 10'000;

struct Kept {
  TestDir dir;
  FakeClock clock;

  CheckpointStore Store() const {
    return CheckpointStore::Open(dir / "manifests", BlobStore::Open(dir / "parts").value(),
                                 dir / "files")
        .value();
  }
  // Stores what is in files/ now.
  std::string Keep(const std::string& store = "objects") {
    CheckpointSyncOptions options;
    options.dir = HeldFolder::At(dir / "files").value();
    options.manifest_dir = dir / "manifests";
    options.parts_dir = dir / "parts";
    options.part_bytes = kPart;
    options.spec.keep_last = 10;
    options.spec.store = store;
    auto sync = CheckpointSync::Open(options, clock);
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

TEST(Restore, GivesBackBytesModesTimesAndLinks) {
  Kept kept;
  Put(kept.dir / "files/step_3.pt", Bytes(123'456, 'a'));
  Put(kept.dir / "files/deep/er/optimizer.pt", Bytes(10'000, 'b'));
  Put(kept.dir / "files/empty", "");
  ASSERT_EQ(::chmod((kept.dir / "files/empty").c_str(), 0500), 0);
  ASSERT_EQ(::symlink("../step_3.pt", (kept.dir / "files/deep/latest").c_str()), 0);
  EXPECT_EQ(kept.Keep(), "1-1");
  const auto restored = RestoreCheckpoint(kept.Store(), "", kept.dir / "new/place");
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

TEST(Restore, NoCheckpointIsAStartFromTheBeginning) {
  Kept kept;
  const auto restored = RestoreCheckpoint(kept.Store(), "", kept.dir / "new");
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->checkpoint);
  EXPECT_TRUE(restored->passed_over.empty());
  EXPECT_EQ(RestoreCheckpoint(kept.Store(), "1-1", kept.dir / "new").error().code,
            ErrorCode::kNotFound);
}

TEST(Restore, RefusesAFolderThatHoldsSomething) {
  Kept kept;
  Put(kept.dir / "files/a.pt", "a");
  kept.Keep();
  const auto refused = RestoreCheckpoint(kept.Store(), "", kept.dir / "files");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(TreeOf(kept.dir / "files").size(), 1u);
}

// Planted bug: the sha256 of a part is not compared.
TEST(Restore, FallsBackToAnOlderWholeOneAndSaysSo) {
  Kept kept;
  Put(kept.dir / "files/a.pt", Bytes(50'000, 'a'));
  kept.Keep();
  const auto first = TreeOf(kept.dir / "files");
  Put(kept.dir / "files/a.pt", Bytes(50'000, 'q'));
  Put(kept.dir / "files/b.pt", Bytes(30'000, 'r'));
  EXPECT_EQ(kept.Keep(), "1-2");
  kept.DamagePart("1-2", "b.pt", 2);
  const auto restored = RestoreCheckpoint(kept.Store(), "", kept.dir / "new");
  ASSERT_TRUE(restored) << restored.error().what;
  EXPECT_EQ(restored->checkpoint->id, "1-1");
  ASSERT_EQ(restored->passed_over.size(), 1u);
  EXPECT_EQ(restored->passed_over[0].id, "1-2");
  EXPECT_NE(restored->passed_over[0].error.what.find("b.pt"), std::string::npos);
  EXPECT_EQ(TreeOf(kept.dir / "new"), first) << "nothing of the damaged one may stay";
}

TEST(Restore, AnAskedForOneThatIsDamagedIsAnErrorThatNamesTheFile) {
  Kept kept;
  Put(kept.dir / "files/a.pt", "older");
  kept.Keep();
  Put(kept.dir / "files/a.pt", Bytes(50'000, 'a'));
  kept.Keep();
  kept.DamagePart("1-2", "a.pt", 0);
  const auto refused = RestoreCheckpoint(kept.Store(), "1-2", kept.dir / "new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(refused.error().what.find("a.pt"), std::string::npos);
  EXPECT_FALSE(refused.error().why.empty());
  EXPECT_FALSE(refused.error().hint.empty());
  EXPECT_TRUE(TreeOf(kept.dir / "new").empty());
  EXPECT_TRUE(RestoreCheckpoint(kept.Store(), "1-1", kept.dir / "new"));
}

TEST(Restore, NothingWholeIsToldAndStartsFromTheBeginning) {
  Kept kept;
  Put(kept.dir / "files/a.pt", "0123456789");
  kept.Keep();
  kept.DamagePart("1-1", "a.pt", 0);
  const auto restored = RestoreCheckpoint(kept.Store(), "", kept.dir / "new");
  ASSERT_TRUE(restored);
  EXPECT_FALSE(restored->checkpoint);
  EXPECT_EQ(restored->passed_over.size(), 1u);
}

TEST(Restore, SharedCheckpointsAreCheckedInPlace) {
  Kept kept;
  Put(kept.dir / "files/step_1.pt", Bytes(50'000, 'a'));
  kept.Keep("shared");
  Put(kept.dir / "files/step_2.pt", Bytes(50'000, 'b'));
  kept.Keep("shared");
  EXPECT_TRUE(ListDir(kept.dir / "parts/tmp").value().empty());
  size_t parts = 0;
  ASSERT_TRUE(kept.Store().parts().ForEach([&](const BlobRef&) { ++parts; }).ok());
  EXPECT_EQ(parts, 0u);
  const auto whole = RestoreCheckpoint(kept.Store(), "", kept.dir / "files");
  ASSERT_TRUE(whole) << whole.error().what;
  EXPECT_EQ(whole->checkpoint->id, "1-2");
  const int fd = ::open((kept.dir / "files/step_2.pt").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "!!", 2, 40'000), 2);
  ::close(fd);
  const auto older = RestoreCheckpoint(kept.Store(), "", kept.dir / "files");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->checkpoint->id, "1-1");
  EXPECT_EQ(older->passed_over.size(), 1u);
  EXPECT_EQ(TreeOf(kept.dir / "files").size(), 2u) << "shared files are never removed";
}

// Planted bug: opening the folder by path: the files are written where the link leads.
TEST(Restore, FollowsNoLinkInTheFoldersPlace) {
  Kept kept;
  ASSERT_TRUE(MakeDirs(kept.dir / "files").ok());
  ASSERT_TRUE(ReplaceFile(kept.dir / "files/a.pt", "weights").ok());
  kept.Keep();
  ASSERT_TRUE(MakeDirs(kept.dir / "server").ok());
  ASSERT_EQ(::symlink((kept.dir / "server").c_str(), (kept.dir / "place").c_str()), 0);
  const auto restored = RestoreCheckpoint(kept.Store(), "", kept.dir / "place");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kDenied);
  EXPECT_TRUE(ListDir(kept.dir / "server")->empty());
}

}  // namespace
}  // namespace athanor
