// Objects in backups and under fsck.
#include "record/backup/backup_objects.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "record/backup/copy_tree.h"
#include "record/fsck/fsck.h"
#include "record/objects/directory_object_store.h"
#include "record/testing.h"

namespace athanor {
namespace {

class ObjectHome : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeDirs(layout_.server()).ok());
    ASSERT_NE(OpenStore(layout_.database()), nullptr);
    store_ = OpenObjectDirectory(layout_.objects(), clock_).value();
    ASSERT_TRUE(store_->CreateBucket("bucket").ok());
  }
  static void Put(ObjectStore& store, const std::string& key, std::string_view bytes) {
    auto writer = store.NewObject({}).value();
    ASSERT_TRUE(writer->Write(bytes).ok());
    const auto digests = writer->Finish().value();
    ASSERT_TRUE(store.Put("bucket", key, std::move(writer), digests, {}, std::nullopt, {}));
  }
  static FsckReport Check(const StoreLayout& layout, bool repair = false) {
    auto report = Fsck(layout, {repair, true});
    EXPECT_TRUE(report) << report.error().what;
    return report ? *report : FsckReport{};
  }
  std::string OnlyFile() const {
    const auto shards = ListDir(layout_.objects() + "/data").value();
    for (const auto& shard : shards) {
      const auto files = ListDir(layout_.objects() + "/data/" + shard).value();
      if (!files.empty()) return layout_.objects() + "/data/" + shard + "/" + files[0];
    }
    return "";
  }

  const ScratchDir dir_;
  const SystemClock clock_{};
  const StoreLayout layout_{dir_ / "home"};
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(ObjectHome, FsckFindsNothingInAGoodOne) {
  Put(*store_, "a", "bytes");
  store_.reset();
  const auto report = Check(layout_);
  EXPECT_TRUE(report.clean()) << report.findings[0].what;
  EXPECT_EQ(report.objects, 1u);
}

// Planted bug: compare sizes only, also with `deep`.
TEST_F(ObjectHome, FsckTellsChangedAndMissingBytes) {
  Put(*store_, "a/b", "bytes");
  store_.reset();
  const std::string file = OnlyFile();
  ASSERT_TRUE(ReplaceFile(file, "bytez").ok());
  auto report = Check(layout_);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].what, "object bucket/a/b is damaged");
  ASSERT_EQ(::unlink(file.c_str()), 0);
  report = Check(layout_);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].what, "object bucket/a/b is missing");
}

TEST_F(ObjectHome, BytesOfNobodyArePutAside) {
  Put(*store_, "a", "bytes");
  store_.reset();
  const std::string stray = DirName(OnlyFile()) + "/01jzzzzzzzzzzzzzzzzzzzzzzz";
  ASSERT_TRUE(ReplaceFile(stray, "half").ok());
  EXPECT_EQ(Check(layout_).findings.size(), 1u);
  EXPECT_EQ(Check(layout_, true).left(), 0u);
  EXPECT_FALSE(Exists(stray));
  EXPECT_TRUE(Check(layout_).clean());
}

// Planted bug: copy the files first and the index afterwards.
TEST_F(ObjectHome, ABackupWhileObjectsComeAndGoIsWhole) {
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      // Of which each lives for longer than a copy takes, also on a busy machine: a copy that finds
      // something gone each time is given up.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::string key = "k" + std::to_string(i % 50);
      Put(*store_, key, "bytes of " + std::to_string(i));
      if (i % 3 != 0) continue;
      ASSERT_TRUE(store_->Delete("bucket", {key}, {}).ok());
    }
  });
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    const StoreLayout copy_layout{dir_ / ("copy" + std::to_string(round))};
    ASSERT_TRUE(MakeDirs(copy_layout.server()).ok());
    ASSERT_NE(OpenStore(copy_layout.database()), nullptr);
    TreeCopy copy(TreeCopy::Blobs::kLink);
    const auto copied = CopyObjects(layout_, copy_layout, copy);
    EXPECT_TRUE(copied.ok()) << copied.error().what;
    if (!copied.ok()) break;
    const auto report = Check(copy_layout);
    EXPECT_TRUE(report.clean()) << report.findings[0].what << ": " << report.findings[0].why;
  }
}

}  // namespace
}  // namespace athanor
