#include "cli/screen/hosts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text/text.h"

namespace athanor {
namespace {

// Two hosts of two ranks: the first runs, the last rank of the second fell.
Json Gang() {
  return ParseJson(R"({
    "spec": {"resources": {"nodes": 2, "processes": 2}},
    "attempts": [{
      "number": 1,
      "fall_order": ["rank 3 on algo-2 failed first: exit 1"],
      "hosts": [
        {"name": "algo-1", "state": "Running", "rank_text": "0 and 1",
         "usage": {"cpu_percent": 187, "memory_bytes": 1048576, "memory_peak": 2097152}},
        {"name": "algo-2", "state": "Ended", "rank_text": "2 signal 15, 3 exit 1",
         "usage": {"cpu_percent": 50, "memory_bytes": 1048576, "memory_peak": 2097152},
         "exit": {"code": 1, "memory_peak": 3145728}}]}]})")
      .value();
}

std::vector<std::string> Rows(const std::string& table) {
  std::vector<std::string> rows;
  for (const auto& line : Split(Trim(table), '\n')) rows.emplace_back(Trim(line));
  return rows;
}

TEST(HostsTable, ShowsEachHostWithItsUseAndItsRanks) {
  Json job = Gang();
  const auto rows = Rows(HostsTable(job, job["attempts"][0], {}));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], "HOST    STATE    CPU    MEMORY      RANKS");
  EXPECT_EQ(rows[1], "algo-1  Running  187 %  1 MiB       0 and 1");
  EXPECT_EQ(rows[2], "algo-2  Ended    -      peak 3 MiB  2 signal 15, 3 exit 1");
}

TEST(HostsTable, AJobOfOneRankHasNone) {
  Json job = Gang();
  job["spec"]["resources"] = Json::object();
  job["attempts"][0]["hosts"].erase(1);
  EXPECT_EQ(HostsTable(job, job["attempts"][0], {}), "");
  job["attempts"][0].erase("hosts");
  EXPECT_EQ(HostsTable(job, job["attempts"][0], {}), "");
}

TEST(RanksOf, SaysNodesAndProcesses) {
  EXPECT_EQ(RanksOf({{"nodes", 2}, {"processes", 4}}), "2 nodes with 4 processes each");
  EXPECT_EQ(RanksOf(Json::object()), "");
}

TEST(FallOrderOf, IsThatOfTheLastAttempt) {
  Json job = Gang();
  EXPECT_EQ(FallOrderOf(job), std::vector<std::string>{"rank 3 on algo-2 failed first: exit 1"});
  job["attempts"].push_back({{"number", 2}});
  EXPECT_TRUE(FallOrderOf(job).empty());
  EXPECT_TRUE(FallOrderOf(Json::object()).empty());
}

}  // namespace
}  // namespace athanor
