#include "record/documents/document_store.h"

#include <gtest/gtest.h>

#include "record/db/database.h"
#include "record/testing.h"

namespace athanor {
namespace {

class DocumentStoreTest : public ::testing::Test {
 protected:
  ScratchDir dir_;
  std::unique_ptr<Database> database_ = OpenStore(dir_ / "athanor.db");
  DocumentStore store_{*database_};
};

TEST_F(DocumentStoreTest, GivesBackWhatWasPut) {
  ASSERT_TRUE(store_.Put("tags", "a", "{\"x\":1}", WallTime{5}));
  auto found = store_.Find("tags", "a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->text, "{\"x\":1}");
  EXPECT_EQ((*found)->created.ms, 5);
  EXPECT_FALSE(*store_.Find("tags", "b"));
  EXPECT_FALSE(*store_.Find("other", "a"));
}

TEST_F(DocumentStoreTest, PutReplacesAndCreateDoesNot) {
  ASSERT_TRUE(store_.Create("study", "a", "1", WallTime{5}));
  auto again = store_.Create("study", "a", "2", WallTime{6});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConflict);
  EXPECT_EQ((*store_.Find("study", "a"))->text, "1");
  ASSERT_TRUE(store_.Put("study", "a", "3", WallTime{7}));
  EXPECT_EQ((*store_.Find("study", "a"))->text, "3");
  EXPECT_EQ((*store_.Find("study", "a"))->created.ms, 5);
  EXPECT_EQ((*store_.Find("study", "a"))->updated.ms, 7);
}

TEST_F(DocumentStoreTest, ListsOneKindNewestFirst) {
  ASSERT_TRUE(store_.Put("study", "old", "1", WallTime{1}));
  ASSERT_TRUE(store_.Put("study", "new", "2", WallTime{2}));
  ASSERT_TRUE(store_.Put("tags", "new", "3", WallTime{3}));
  auto all = store_.List("study");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->front().name, "new");
  ASSERT_TRUE(store_.Remove("study", "new"));
  ASSERT_TRUE(store_.Remove("study", "new"));
  EXPECT_EQ(store_.List("study")->size(), 1u);
}

}  // namespace
}  // namespace athanor
