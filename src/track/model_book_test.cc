#include "track/model_book.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

VersionRow VersionOf(const std::string& name, const std::string& source) {
  VersionRow row;
  row.name = name;
  row.source = source;
  return row;
}

TEST(ModelBook, NumbersVersionsAndFindsThemByAlias) {
  ModelBook book;
  int64_t made = 0;
  EXPECT_EQ(book.AddVersion(VersionOf("net", "s"), {}, 1, made).error().code,
            ErrorCode::kNotFound);
  ASSERT_TRUE(book.Add("net", "", {}, 1));
  EXPECT_EQ(book.Add("net", "", {}, 1).error().code, ErrorCode::kConflict);
  ASSERT_TRUE(book.AddVersion(VersionOf("net", "a"), {}, 2, made));
  ASSERT_TRUE(book.AddVersion(VersionOf("net", "b"), {}, 3, made));
  EXPECT_EQ(made, 2);
  ASSERT_TRUE(book.SetAlias("net", "best", 1));
  EXPECT_EQ((*book.FindAlias("net", "best"))->row.source, "a");
  EXPECT_EQ((*book.FindAlias("net", "latest"))->row.source, "b");
  ASSERT_TRUE(book.RemoveVersion("net", 1, 4));
  EXPECT_FALSE(book.FindAlias("net", "best"));
  // A number is not given twice while a later one is there.
  ASSERT_TRUE(book.AddVersion(VersionOf("net", "c"), {}, 5, made));
  EXPECT_EQ(made, 3);
}

TEST(ModelBook, ArchivesTheOthersOfAStage) {
  ModelBook book;
  int64_t made = 0;
  ASSERT_TRUE(book.Add("net", "", {}, 1));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(book.AddVersion(VersionOf("net", "s"), {}, 1, made));
  ASSERT_TRUE(book.MoveVersion("net", 1, "Production", false, 2));
  ASSERT_TRUE(book.MoveVersion("net", 2, "Production", true, 3));
  EXPECT_EQ((*book.FindVersion("net", 1))->row.stage, "Archived");
  EXPECT_EQ((*book.FindVersion("net", 2))->row.stage, "Production");
  EXPECT_EQ((*book.FindVersion("net", 3))->row.stage, "None");
}

// Planted bug: leave the versions' tags behind when a model is renamed.
TEST(ModelBook, ComesBackAsItWasAlsoAfterARename) {
  ModelBook book;
  int64_t made = 0;
  ASSERT_TRUE(book.Add("net", "d", {{"t", "1"}}, 1));
  ASSERT_TRUE(book.AddVersion(VersionOf("net", "s"), {{"v", "2"}}, 1, made));
  ASSERT_TRUE(book.SetAlias("net", "best", 1));
  const auto batch = book.Rename("net", "other", 9);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->models_gone, std::vector<std::string>{"net"});
  ModelBook again;
  again.Load(*batch);
  EXPECT_FALSE(again.Find("net"));
  ASSERT_TRUE(again.Find("other"));
  EXPECT_EQ((*again.Find("other"))->tags.at("t"), "1");
  EXPECT_EQ((*again.FindAlias("other", "best"))->tags.at("v"), "2");
}

TEST(ModelBook, KeepsLoggedModelsUntilTheyAreDeleted) {
  ModelBook book;
  LoggedModelRow row;
  row.id = "m-1";
  book.AddLogged(row, {{"a", "1"}}, {{"p", "2"}});
  ASSERT_TRUE(book.SetLoggedStatus("m-1", 2, 5));
  ASSERT_TRUE(book.UntagLogged("m-1", "a", 6));
  EXPECT_EQ(book.UntagLogged("m-1", "a", 6).error().code, ErrorCode::kNotFound);
  EXPECT_EQ((*book.FindLogged("m-1"))->params.at("p"), "2");
  ASSERT_TRUE(book.RemoveLogged("m-1", 7));
  EXPECT_FALSE(book.FindLogged("m-1"));
  EXPECT_TRUE(book.FindLogged("m-1", true));
}

}  // namespace
}  // namespace athanor
