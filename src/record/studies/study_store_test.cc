#include "record/studies/study_store.h"

#include <gtest/gtest.h>

#include "record/testing.h"

namespace athanor {
namespace {

StudyRow Sample(std::string name, int number) {
  StudyRow row;
  row.id = StudyId::New();
  row.key = "key-" + row.id.ToString();
  row.name = std::move(name);
  row.user = "ann";
  row.state = "Running";
  row.created = WallTime{1000 + number};
  row.spec = "{\"metric\":\"loss\"}";
  return row;
}

TEST(StudyStore, GivesBackWhatItWasGiven) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  StudyStore store(*database);
  const auto row = Sample("first", 1);
  ASSERT_TRUE(store.Create(row, {"{\"e\":\"created\"}"}).ok());
  ASSERT_TRUE(
      store.Append(row.id, 1, {"{\"a\":1}", "{\"b\":2}"}, "Completed", false, WallTime{9}).ok());
  const auto found = store.FindKey(row.key);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->id, row.id);
  EXPECT_EQ((*found)->state, "Completed");
  EXPECT_FALSE((*found)->live);
  EXPECT_EQ((*found)->updated.ms, 9);
  EXPECT_EQ((*found)->spec, row.spec);
  EXPECT_EQ((*found)->lines, 3u);
  EXPECT_EQ(*store.Lines(row.id),
            (std::vector<std::string>{"{\"e\":\"created\"}", "{\"a\":1}", "{\"b\":2}"}));
  EXPECT_TRUE(store.List(true)->empty());
}

// Planted bug: append without looking at the length, and two writers' lines mix.
TEST(StudyStore, ALineThatDoesNotFollowTheLastIsRefusedWhole) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  StudyStore store(*database);
  const auto row = Sample("first", 1);
  ASSERT_TRUE(store.Create(row, {"{}"}).ok());
  EXPECT_EQ(store.Append(row.id, 0, {"{}"}, "Failed", false, {}).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(store.Append(row.id, 2, {"{}"}, "Failed", false, {}).error().code,
            ErrorCode::kConflict);
  EXPECT_EQ(store.Lines(row.id)->size(), 1u);
  EXPECT_EQ(store.Resolve("first")->state, "Running");
}

TEST(StudyStore, AKeyMakesOneStudy) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  StudyStore store(*database);
  const auto row = Sample("first", 1);
  ASSERT_TRUE(store.Create(row, {}).ok());
  auto again = Sample("second", 2);
  again.key = row.key;
  EXPECT_EQ(store.Create(again, {}).error().code, ErrorCode::kConflict);
}

TEST(StudyStore, ResolvesByIdEndNameAndLast) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  StudyStore store(*database);
  const auto old = Sample("search", 1), fresh = Sample("search", 2), other = Sample("other", 3);
  for (const auto& row : {old, fresh, other}) ASSERT_TRUE(store.Create(row, {}).ok());
  EXPECT_EQ(store.Resolve("search")->id, fresh.id);
  EXPECT_EQ(store.Resolve("@last")->id, other.id);
  EXPECT_EQ(store.Resolve(old.id.ToString())->id, old.id);
  EXPECT_EQ(store.Resolve(old.id.ToString().substr(16))->id, old.id);
  const auto none = store.Resolve("serch");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().hint.find("search"), std::string::npos);
  ASSERT_TRUE(store.Remove(other.id).ok());
  EXPECT_EQ(store.Resolve("@last")->id, fresh.id);
}

}  // namespace
}  // namespace athanor
