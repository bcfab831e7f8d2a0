#include "door/native/log_part.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace athanor {
namespace {

JobRecord TwoByTwo() {
  JobRecord record;
  record.spec.name = "gang";
  record.spec.resources.nodes = 2;
  record.spec.resources.processes = 2;
  return record;
}

Request Asking(const std::string& query) {
  Request request;
  for (const auto& pair : Split(query, '&')) {
    const size_t equals = pair.find('=');
    if (equals != std::string::npos) {
      request.query.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
    }
  }
  return request;
}

LogPart Part(const std::string& query, const JobRecord& record = TwoByTwo()) {
  auto part = LogPartIn(Asking(query), record);
  EXPECT_TRUE(part.has_value()) << query << ": " << (part ? "" : part.error().what);
  return part.value_or(LogPart{});
}

TEST(LogPart, AHostIsNamedAsTheScriptSeesItOrByItsNumber) {
  EXPECT_EQ(Part("host=algo-2").host, 1u);
  EXPECT_EQ(Part("host=2").host, 1u);
  EXPECT_EQ(Part("host=algo-1").host, 0u);
  EXPECT_FALSE(Part("").host);
  for (const char* wrong : {"host=algo-3", "host=0", "host=3", "host=algo-0", "host=x"}) {
    const auto part = LogPartIn(Asking(wrong), TwoByTwo());
    ASSERT_FALSE(part) << wrong;
    EXPECT_EQ(part.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(part.error().hint, "its hosts are algo-1 to algo-2");
  }
}

TEST(LogPart, APhaseThatDoesNotExistIsRefused) {
  EXPECT_EQ(LogPartIn(Asking("phase=later"), TwoByTwo()).error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(Part("phase=none").run);  // for who only waits for the end
}

TEST(LogPart, ARankHasTheSetUpOfItsHost) {
  const auto part = Part("rank=3&phase=all");
  EXPECT_EQ(part.rank, 3u);
  EXPECT_EQ(part.host, 1u);
  EXPECT_TRUE(part.setup && part.run);
  EXPECT_FALSE(Part("rank=0", JobRecord{}).host);  // as long as there is one host
}

TEST(LogPart, ARankOfAnotherHostIsRefused) {
  EXPECT_EQ(Part("rank=2&host=2").host, 1u);
  const auto part = LogPartIn(Asking("rank=0&host=2"), TwoByTwo());
  ASSERT_FALSE(part);
  EXPECT_NE(part.error().what.find("has no rank 0 on algo-2"), std::string::npos);
  EXPECT_EQ(part.error().why, "rank 0 runs on algo-1");
}

// Planted bug: take what does not exist for a rank that prints nothing. `ath logs -f` would wait.
TEST(LogPart, ARankThatDoesNotExistIsRefused) {
  for (const char* wrong : {"rank=4", "rank=4294967296", "rank=-1", "rank=x", "rank=1.5"}) {
    EXPECT_FALSE(LogPartIn(Asking(wrong), TwoByTwo())) << wrong;
  }
  EXPECT_EQ(LogPartIn(Asking("rank=4"), TwoByTwo()).error().hint, "its ranks are 0 to 3");
}

TEST(LogPart, ARangeOfNodesHasTheHostsThatItGot) {
  JobRecord range;
  range.spec.resources.nodes = 1;
  range.spec.resources.nodes_most = 4;
  EXPECT_FALSE(LogPartIn(Asking("host=2"), range));
  range.attempts.emplace_back().hosts.resize(3);
  EXPECT_EQ(Part("host=3", range).host, 2u);
  EXPECT_FALSE(LogPartIn(Asking("host=4"), range));
}

TEST(LogPart, KnowsWhetherLinesOfSeveralRanksCome) {
  const auto record = TwoByTwo();
  EXPECT_TRUE(HasSeveralRanks(Part(""), record));
  EXPECT_TRUE(HasSeveralRanks(Part("host=1"), record));
  EXPECT_FALSE(HasSeveralRanks(Part("rank=1"), record));
  JobRecord wide;
  wide.spec.resources.nodes = 2;
  EXPECT_TRUE(HasSeveralRanks(Part("", wide), wide));
  EXPECT_FALSE(HasSeveralRanks(Part("host=1", wide), wide));
  EXPECT_FALSE(HasSeveralRanks(Part("", JobRecord{}), JobRecord{}));
}

}  // namespace
}  // namespace athanor
