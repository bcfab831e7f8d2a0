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
  EXPECT_EQ(book.AddVersion(VersionOf("net", "s"), {}, 1, made).error().code, ErrorCode::kNotFound);
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
  // The number of a removed version is not used again.
  ASSERT_TRUE(book.AddVersion(VersionOf("net", "c"), {}, 5, made));
  EXPECT_EQ(made, 3);
}

// What a store would give back after all these batches.
RunBatch Stored(const std::vector<RunBatch>& batches) {
  RunBatch all;
  for (const auto& batch : batches) {
    for (const auto& row : batch.models) {
      std::erase_if(all.models, [&](const auto& one) { return one.name == row.name; });
      all.models.push_back(row);
    }
    for (const auto& [name, version] : batch.versions_gone) {
      std::erase_if(all.versions, [n = name, v = version](const auto& one) {
        return one.name == n && one.version == v;
      });
    }
    all.versions.insert(all.versions.end(), batch.versions.begin(), batch.versions.end());
    all.logged.insert(all.logged.end(), batch.logged.begin(), batch.logged.end());
    all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return all;
}

// Planted bug: count from the highest version that is still there.
TEST(ModelBook, ANumberThatWasGivenIsNeverGivenAgain) {
  ModelBook book;
  std::vector<RunBatch> kept;
  int64_t made = 0;
  kept.push_back(*book.Add("net", "", {}, 1));
  for (int i = 0; i < 2; ++i) {
    kept.push_back(*book.AddVersion(VersionOf("net", "s"), {}, 2, made));
  }
  kept.push_back(*book.RemoveVersion("net", 2, 3));
  kept.push_back(*book.RemoveVersion("net", 1, 3));
  ModelBook again;
  again.Load(Stored(kept));
  ASSERT_TRUE(again.AddVersion(VersionOf("net", "s"), {}, 4, made));
  EXPECT_EQ(made, 3);
  ASSERT_TRUE(again.RemoveVersion("net", 3, 5));
  ASSERT_TRUE(again.Rename("net", "other", 6));
  ASSERT_TRUE(again.AddVersion(VersionOf("other", "s"), {}, 7, made));
  EXPECT_EQ(made, 4);
  // A model that is created again is another one.
  ASSERT_TRUE(again.Remove("other"));
  ASSERT_TRUE(again.Add("other", "", {}, 8));
  ASSERT_TRUE(again.AddVersion(VersionOf("other", "s"), {}, 9, made));
  EXPECT_EQ(made, 1);
}

// Planted bug: keep a copy's source as the place of its files.
TEST(ModelBook, AVersionKnowsItsFilesAndItsRunWhateverLeadsToThem) {
  ModelBook book;
  std::vector<RunBatch> kept;
  int64_t made = 0;
  LoggedModelRow logged;
  logged.id = "m-1";
  logged.run_id = "run";
  logged.artifacts = "mlflow-artifacts:/0/models/m-1/artifacts";
  kept.push_back(book.AddLogged(logged, {}, {}));
  kept.push_back(*book.Add("net", "", {}, 1));
  auto first = VersionOf("net", "models:/m-1");
  first.model_id = "m-1";
  kept.push_back(*book.AddVersion(first, {}, 2, made));
  EXPECT_EQ((*book.FindVersion("net", 1))->row.run_id, "run");
  EXPECT_EQ((*book.FindVersion("net", 1))->row.source, "models:/m-1");
  EXPECT_EQ((*book.FindLogged("m-1"))->tags.at("mlflow.modelVersions"),
            "[{\"name\": \"net\", \"version\": 1}]");
  ASSERT_TRUE(book.SetAlias("net", "best", 1));
  kept.push_back(*book.AddVersion(VersionOf("net", "models:/net@best"), {}, 3, made));
  kept.push_back(*book.AddVersion(VersionOf("net", "models:/net/2"), {}, 3, made));
  auto second = VersionOf("net", logged.artifacts);
  second.model_id = "m-1";
  kept.push_back(*book.AddVersion(second, {}, 4, made));
  EXPECT_EQ((*book.FindLogged("m-1"))->tags.at("mlflow.modelVersions"),
            "[{\"name\": \"net\", \"version\": 1}, {\"name\": \"net\", \"version\": 4}]");
  // The original may go: the copy knows where the files are.
  kept.push_back(*book.RemoveVersion("net", 1, 5));
  kept.push_back(*book.Rename("net", "other", 6));
  ModelBook again;
  again.Load(Stored(kept));
  for (const int64_t number : {2, 3, 4}) {
    EXPECT_EQ((*again.FindVersion("other", number))->place(), logged.artifacts) << number;
  }
  EXPECT_EQ((*again.FindVersion("other", 3))->row.source, "models:/net/2");
  for (const char* none : {"models:/m-2", "models:/other/9", "models:/other@none"}) {
    EXPECT_FALSE(again.AddVersion(VersionOf("other", none), {}, 7, made)) << none;
  }
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
