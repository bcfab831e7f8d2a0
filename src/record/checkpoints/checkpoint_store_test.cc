#include "record/checkpoints/checkpoint_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "record/checkpoints/checkpoint_testing.h"

namespace athanor {
namespace {

const std::string kBig = std::string(1'000, 'x') + std::string(1'000, 'y') + "rest";

std::vector<std::string> ListedIds(const CheckpointStore& store) {
  std::vector<std::string> ids;
  const auto listing = store.List();
  EXPECT_TRUE(listing);
  for (const auto& info : listing->checkpoints) ids.push_back(info.id);
  return ids;
}

TEST(CheckpointStore, GivesBackWhatWasCommittedNewestFirst) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  EXPECT_FALSE(store.Newest()->manifest);
  EXPECT_TRUE(ListedIds(store).empty());
  EXPECT_EQ(CommitStep(store, 1, 10, {{"model.pt", kBig}, {"sub/empty", ""}}), "1-1");
  EXPECT_EQ(CommitStep(store, 1, 20, {{"model.pt", kBig + "!"}}), "1-2");
  ASSERT_TRUE(store.Fence(2).ok());
  EXPECT_EQ(CommitStep(store, 2, 15, {{"model.pt", "small"}}), "2-1");
  EXPECT_EQ(ListedIds(store), (std::vector<std::string>{"2-1", "1-2", "1-1"}));

  auto again = OpenCheckpoints(dir.path());
  const auto newest = again.Newest();
  ASSERT_TRUE(newest && newest->manifest);
  EXPECT_EQ(newest->manifest->info.step, 15);
  EXPECT_EQ(newest->manifest->info.bytes, 5u);
  EXPECT_EQ(again.Newest("2-1")->manifest->info.id, "1-2");
  const auto first = again.Load("1-1");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->info.files, 2u);
  EXPECT_EQ(ReadBack(again, *first), (Contents{{"model.pt", kBig}, {"sub/empty", ""}}));
  EXPECT_EQ(again.Load("1-3").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(again.Load("../1-1").error().code, ErrorCode::kInvalid);
}

TEST(CheckpointStore, TenCommitsLaterTheTenthIsNewerThanTheNinth) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  for (int64_t step = 1; step <= 11; ++step) CommitStep(store, 1, step, {{"f", "same"}});
  EXPECT_EQ(store.Newest()->manifest->info.id, "1-11");
}

TEST(CheckpointStore, AnOlderAttemptIsRefusedOnceALaterOneTookOver) {
  const TestDir dir;
  auto old = OpenCheckpoints(dir.path());
  ASSERT_TRUE(old.Fence(1).ok());
  CommitStep(old, 1, 10, {{"f", "one"}});
  auto late = ManifestOf(old, 1, 20, {{"f", "two"}});
  ASSERT_TRUE(OpenCheckpoints(dir.path()).Fence(2).ok());
  const auto refused = old.Commit(late);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(old.Fence(1).error().code, ErrorCode::kConflict);
  EXPECT_TRUE(old.Fence(2).ok());
  EXPECT_EQ(ListedIds(old), std::vector<std::string>{"1-1"});
}

TEST(CheckpointStore, AManifestWithoutItsPartsIsNotCommitted) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  auto manifest = ManifestOf(store, 1, 10, {{"deep/model.pt", kBig}});
  ASSERT_TRUE(store.parts().Remove(manifest.files[0].parts[1]).ok());
  const auto refused = store.Commit(manifest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_NE(refused.error().what.find("deep/model.pt"), std::string::npos);
  EXPECT_TRUE(ListedIds(store).empty());
}

TEST(CheckpointStore, RemovingACheckpointKeepsThePartsOthersName) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  CommitStep(store, 1, 1, {{"a", kBig}, {"only", "gone later"}});
  CommitStep(store, 1, 2, {{"a", kBig + "!"}});
  EXPECT_EQ(PartsKept(store), 5u);  // x, y, rest, rest!, gone later
  ASSERT_TRUE(store.Remove("1-1").ok());
  EXPECT_EQ(PartsKept(store), 3u);
  EXPECT_EQ(ReadBack(store, *store.Newest()->manifest), (Contents{{"a", kBig + "!"}}));
  EXPECT_TRUE(store.Remove("1-1").ok());
}

TEST(CheckpointStore, NoPartIsRemovedWhileAManifestCannotBeRead) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  CommitStep(store, 1, 1, {{"a", "one"}});
  CommitStep(store, 1, 2, {{"a", "two"}});
  CommitStep(store, 1, 3, {{"a", "three"}});
  ASSERT_TRUE(ReplaceFile(dir / "manifests/1-2.manifest", "damaged").ok());
  ASSERT_TRUE(store.Remove("1-1").ok());
  EXPECT_EQ(PartsKept(store), 3u);
  ASSERT_TRUE(store.Fence(2).ok());
  EXPECT_EQ(PartsKept(store), 3u);
}

TEST(CheckpointStore, ANameIsNeverGivenTwice) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  CommitStep(store, 1, 1, {{"a", "one"}});
  EXPECT_EQ(CommitStep(store, 1, 2, {{"a", "two"}}), "1-2");
  ASSERT_TRUE(store.Remove("1-2").ok());
  EXPECT_EQ(CommitStep(store, 1, 2, {{"a", "other"}}), "1-3");
  ASSERT_TRUE(store.Remove("1-3").ok());
  ASSERT_TRUE(store.Remove("1-1").ok());
  EXPECT_EQ(CommitStep(OpenCheckpoints(dir.path()) = store, 1, 2, {{"a", "b"}}), "1-4");
}

TEST(CheckpointStore, PartsOfASyncThatWasNeverFinishedGoWithTheNextAttempt) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  ASSERT_TRUE(store.Fence(1).ok());
  CommitStep(store, 1, 1, {{"a", "kept"}});
  ManifestOf(store, 1, 2, {{"a", "never committed"}});
  ASSERT_TRUE(ReplaceFile(dir / "manifests/.1-2.manifest.abc.tmp", "half").ok());
  ASSERT_TRUE(store.Fence(1).ok());  // the same attempt goes on where it was
  EXPECT_EQ(PartsKept(store), 2u);
  ASSERT_TRUE(store.Fence(2).ok());
  EXPECT_EQ(PartsKept(store), 1u);
  EXPECT_FALSE(Exists(dir / "manifests/.1-2.manifest.abc.tmp"));
}

TEST(CheckpointStore, OnlyTheAttemptThatStoresMayDropWhatNobodyNames) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  ASSERT_TRUE(store.Fence(2).ok());
  CommitStep(store, 2, 1, {{"a", "kept"}});
  const auto pending = ManifestOf(store, 2, 2, {{"a", "being stored"}, {"b", "given up"}});
  const auto needed = [&](const std::string& sha256) {
    return sha256 == pending.files[0].parts[0];
  };
  EXPECT_FALSE(store.DropUnnamedParts(1, needed).ok());
  EXPECT_EQ(PartsKept(store), 3u);
  ASSERT_TRUE(store.DropUnnamedParts(2, needed).ok());
  EXPECT_EQ(PartsKept(store), 2u);
}

struct Keeping {
  const TestDir dir;
  CheckpointStore store = OpenCheckpoints(dir.path());
  Keeping() {
    for (int64_t step = 1; step <= 5; ++step) {
      CommitStep(store, 1, step, {{"f", std::string(static_cast<size_t>(step), 'z')}});
    }
  }
  std::vector<std::string> Left(const CheckpointSpec& spec,
                                const CheckpointStore::ValueOf& value_of = {}) {
    const auto removed = store.ApplyKeep(spec, value_of);
    EXPECT_TRUE(removed) << removed.error().what;
    EXPECT_EQ(removed->size() + ListedIds(store).size(), 5u);
    return ListedIds(store);
  }
};

CheckpointSpec Spec(uint32_t last, uint32_t best, std::string goal = "min") {
  CheckpointSpec spec;
  spec.keep_last = last;
  spec.keep_best = best;
  spec.best_metric = "loss";
  spec.best_goal = std::move(goal);
  return spec;
}

using Ids = std::vector<std::string>;

TEST(CheckpointStore, KeepsTheLastOnes) {
  Keeping keeping;
  EXPECT_EQ(keeping.Left(Spec(2, 0)), (Ids{"1-5", "1-4"}));
  EXPECT_EQ(PartsKept(keeping.store), 2u);
}

TEST(CheckpointStore, NeverRemovesTheNewest) { EXPECT_EQ(Keeping().Left(Spec(0, 0)), Ids{"1-5"}); }

TEST(CheckpointStore, KeepsTheBestBesidesTheLast) {
  const auto loss = [](int64_t step) -> std::optional<double> {
    if (step == 4) return std::nullopt;
    if (step == 3) return std::numeric_limits<double>::quiet_NaN();
    return std::fabs(static_cast<double>(step) - 2);  // 2 is best, then 1
  };
  EXPECT_EQ(Keeping().Left(Spec(1, 2), loss), (Ids{"1-5", "1-2", "1-1"}));
  EXPECT_EQ(Keeping().Left(Spec(1, 1, "max"), loss), Ids{"1-5"});
}

TEST(CheckpointStore, OfEquallyGoodOnesTheNewerStays) {
  EXPECT_EQ(Keeping().Left(Spec(1, 2), [](int64_t) { return 1.0; }), (Ids{"1-5", "1-4"}));
}

TEST(CheckpointStore, OnesThatAreNotWholeDoNotCountAsKept) {
  Keeping keeping;
  for (const char* id : {"1-5", "1-4"}) {
    const auto manifest = keeping.store.Load(id).value();
    ASSERT_TRUE(keeping.store.parts().Remove(manifest.files[0].parts[0]).ok());
  }
  EXPECT_EQ(keeping.Left(Spec(1, 0)), (Ids{"1-5", "1-4", "1-3"}));
  const auto newest = keeping.store.Newest();
  EXPECT_EQ(newest->manifest->info.id, "1-3");
  EXPECT_EQ(newest->passed_over.size(), 2u);
}

TEST(CheckpointStore, SharedFilesAreLookedForWhereTheyLie) {
  const TestDir dir;
  ASSERT_TRUE(MakeDirs(dir / "shared").ok());
  ASSERT_TRUE(ReplaceFile(dir / "shared/a.pt", kBig).ok());
  auto store = CheckpointStore::Open(dir / "manifests", BlobStore::Open(dir / "parts").value(),
                                     dir / "shared")
                   .value();
  CheckpointManifest manifest;
  manifest.info.attempt = 1;
  manifest.shared = true;
  manifest.files = {{"a.pt", kBig.size(), 0644, 1, {}, {Sha256Hex(kBig)}}};
  ASSERT_TRUE(store.Commit(manifest));
  EXPECT_EQ(store.Newest()->manifest->files, manifest.files);
  ASSERT_TRUE(ReplaceFile(dir / "shared/a.pt", "half").ok());
  const auto newest = store.Newest();
  EXPECT_FALSE(newest->manifest);
  ASSERT_EQ(newest->passed_over.size(), 1u);
  EXPECT_NE(newest->passed_over[0].error.what.find("a.pt"), std::string::npos);
}

// Planted bug: what cannot be looked at counts as not whole, and all of it is kept for ever.
TEST(CheckpointStore, OfSharedFilesOnAnotherMachineTheLastOnesAreKept) {
  const TestDir dir;
  auto store =
      CheckpointStore::Open(dir / "manifests", BlobStore::Open(dir / "parts").value()).value();
  for (int64_t step = 1; step <= 5; ++step) {
    CheckpointManifest manifest;
    manifest.info.attempt = 1;
    manifest.info.step = step;
    manifest.shared = true;
    manifest.files = {{"a.pt", kBig.size(), 0644, step, {}, {Sha256Hex(kBig)}}};
    ASSERT_TRUE(store.Commit(manifest));
  }
  CheckpointSpec spec;
  spec.keep_last = 2;
  EXPECT_EQ(store.ApplyKeep(spec, {}).value(), (std::vector<std::string>{"1-3", "1-2", "1-1"}));
}

}  // namespace
}  // namespace athanor
