#include "submit/notes.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

ResourceSpec Asked(uint32_t nodes, uint32_t processes, uint32_t most = 0) {
  ResourceSpec resources;
  resources.nodes = nodes;
  resources.processes = processes;
  resources.nodes_most = most;
  return resources;
}

const Inventory kTwoCpus{"here", 2'000, 4ull << 30, 0, ""};

TEST(Notes, OneRankHasNothingToSay) {
  EXPECT_TRUE(NotesAbout({}, {"here", 500, 0, 0, ""}).empty());
  EXPECT_EQ(RanksText({}), "");
}

TEST(Notes, MoreRanksThanCpusAreSaid) {
  EXPECT_TRUE(NotesAbout(Asked(1, 2), kTwoCpus).empty());
  const auto notes = NotesAbout(Asked(2, 4), kTwoCpus);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "8 ranks share the 2 CPUs of this machine, so each of them is slower than alone");
}

TEST(Notes, RanksThatShareWhatWasAskedForAreSaid) {
  auto asked = Asked(2, 2);
  asked.cpu_millis = 500;
  EXPECT_EQ(NotesAbout(asked, kTwoCpus),
            (std::vector<std::string>{
                "2 ranks share 0.5 CPUs on each node, so each of them is slower than alone"}));
  asked.nodes = 1;
  asked.cpu_millis = 1'000;
  EXPECT_EQ(
      NotesAbout(asked, kTwoCpus),
      (std::vector<std::string>{"2 ranks share 1 CPU, so each of them is slower than alone"}));
  asked.cpu_millis = 2'000;
  EXPECT_TRUE(NotesAbout(asked, kTwoCpus).empty());
}

TEST(Notes, ARangeSaysWithWhatItStarts) {
  const auto notes = NotesAbout(Asked(1, 1, 4), kTwoCpus);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("1..4 starts with 1"), std::string::npos) << notes[0];
}

TEST(Notes, RanksAreCountedInWords) {
  EXPECT_EQ(RanksText(Asked(2, 1)), "2 nodes");
  EXPECT_EQ(RanksText(Asked(1, 4)), "4 processes");
  EXPECT_EQ(RanksText(Asked(2, 4)), "2 nodes with 4 processes each");
  EXPECT_EQ(RanksText(Asked(1, 2, 4)), "1..4 nodes with 2 processes each");
}

}  // namespace
}  // namespace athanor
