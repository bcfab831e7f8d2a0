#include "eventfile/projector.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

constexpr char kTorch[] = R"(embeddings {
  tensor_name: "points:00002"
  tensor_path: "00002/points/tensors.tsv"
  metadata_path: "00002/points/metadata.tsv"
}
embeddings {
tensor_name: "points:00003"
tensor_path: "00003/points/tensors.tsv"
}
)";

TEST(Projector, ReadsNamesStepsAndPathsOfBothWritersForms) {
  const auto all = ReadProjectorConfig(kTorch);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "points");
  EXPECT_EQ(all[0].step, 2);
  EXPECT_EQ(all[0].metadata_path, "00002/points/metadata.tsv");
  EXPECT_EQ(all[1].step, 3);
  EXPECT_EQ(all[1].metadata_path, "");
}

TEST(Projector, LeavesOutPathsThatLeadOutOfTheFolder) {
  EXPECT_TRUE(ReadProjectorConfig("embeddings {\ntensor_path: \"../../etc/passwd\"\n}").empty());
  EXPECT_TRUE(ReadProjectorConfig("embeddings {\ntensor_path: \"/etc/passwd\"\n}").empty());
  const auto all =
      ReadProjectorConfig("embeddings {\ntensor_path: \"7/t.tsv\"\nmetadata_path: \"../m\"\n}");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].step, 7);
  EXPECT_EQ(all[0].name, "embedding");
  EXPECT_EQ(all[0].metadata_path, "");
}

TEST(Projector, TakesRowsAtEvenDistancesWithTheirLabels) {
  const auto rows = ReadVectors("1\t2\n3\t4\n5\t6\n7\t8\n", "a\nb\nc\nd\n", 4);
  EXPECT_EQ(rows.rows, 4u);
  EXPECT_EQ(rows.dimensions, 2u);
  EXPECT_EQ(rows.values, (std::vector<double>{1, 2, 7, 8}));
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"a", "d"}));
}

TEST(Projector, PassesOverTheTitlesOfSeveralColumnsOfLabels) {
  const auto rows = ReadVectors("1\n2\n", "name\tkind\na\tx\nb\ty\n", 100);
  EXPECT_EQ(rows.labels, (std::vector<std::string>{"a\tx", "b\ty"}));
}

TEST(Projector, EndsATableAtARowThatIsNone) {
  EXPECT_EQ(ReadVectors("1\t2\n3\n5\t6\n", "", 100).values, (std::vector<double>{1, 2}));
  EXPECT_EQ(ReadVectors("x\n", "", 100).dimensions, 0u);
  EXPECT_EQ(ReadVectors("", "", 100).rows, 0u);
}

}  // namespace
}  // namespace athanor
