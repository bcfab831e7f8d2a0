#include "job/record_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "job/codec.h"
#include "job/record_reader.h"

namespace athanor {
namespace {

JobRecord PlainRecord() {
  JobRecord record;
  record.id = JobId::New();
  record.key = "key";
  record.user = "ann";
  record.created = WallTime{1'700'000'000'000};
  record.spec.name = "mnist";
  record.spec.command = {"python", "train.py"};
  record.spec.params = {{"lr", "0.1", Param::Kind::kNumber}};
  record.spec.source.bundle = std::string(64, 'b');
  return record;
}

JobRecord FullRecord() {
  JobRecord record = PlainRecord();
  record.user = "";
  record.updated = {};
  record.ended = WallTime{1'700'000'123'456};
  record.last_seen = WallTime{1};
  record.event_seq = std::numeric_limits<uint64_t>::max();
  record.state = JobState::kInterrupted;
  record.cause = {"python_exception", "KeyError: \"x\"\t\\", "ath logs", "line\nline\x7f\x01"};
  record.stop = StopRequest{{"user_stop", "b\xc3\xa4h", "", ""}, "ann", {5}, Millis(-7)};
  record.simulated = true;
  record.spec.shell = true;
  record.spec.command = {"", "broken \xff\xfe utf-8", "\xe2\x80\xae", std::string("\0x", 2)};
  for (const auto kind : {Param::Kind::kString, Param::Kind::kNumber, Param::Kind::kBool,
                          Param::Kind::kNull, Param::Kind::kJson}) {
    record.spec.params.push_back({"p", "", kind});
  }
  record.spec.env = {{"", "empty"}, {"A\"B", "\n"}, {"E", ""}};
  record.spec.data = {{"train", "/data", "shared"}, {}};
  record.spec.metrics = {{"loss", "loss=(\\S+)", ""}};
  record.spec.secrets = {{"TOKEN", "command", "vault read x", "file", true}};
  record.spec.tags = {{"team", "vision"}};
  record.spec.retry = {3, {"agent_lost"}, Millis(1'500)};
  record.spec.priority = std::numeric_limits<int32_t>::min();
  Attempt attempt;
  attempt.id = AttemptId::New();
  attempt.placement = {"process", 1500, 1ull << 40, {0, 3}, {2, 1}, true};
  attempt.exit = ExitInfo{-1, 9, true, false, true, 1, 2, -3, 1, 4, "no"};
  attempt.exit->oom_child = "python3, pid 7";
  attempt.off = {"pid namespace"};
  record.attempts = {attempt, Attempt{}};
  record.outputs = {
      {"model.tar.gz", std::string(64, 'a'), 12, 3},
      {"files", std::string(64, 'b'), 9, 2, "model.pt", {1, 5, {{"big", 5, "too large"}}}}};
  record.spec.outputs = {false, {"*.pt"}, 7};
  record.same_as = "01hf";
  AddMissingHosts(record);
  return record;
}

TEST(RecordText, IsByteForByteWhatTheCodecWrites) {
  for (const JobRecord& record : {JobRecord{}, PlainRecord(), FullRecord()}) {
    EXPECT_EQ(RecordText(record), DumpJson(ToJson(record)));
  }
}

// Stored hashes are compared with new ones: the text must never change.
TEST(RecordText, OfASpecAndOfWhatMakesARunTheSameAreTheCodecsToo) {
  for (const JobRecord& record : {JobRecord{}, PlainRecord(), FullRecord()}) {
    const Json spec = ToJson(record.spec);
    EXPECT_EQ(SpecText(record.spec), DumpJson(spec));
    Json what = Json::object();
    what["command"] = record.spec.command;
    what["params"] = spec.contains("params") ? spec["params"] : Json::array();
    what["bundle"] = record.spec.source.bundle;
    what["data"] = spec.contains("data") ? spec["data"] : Json::array();
    EXPECT_EQ(SameRunText(record.spec), DumpJson(what));
  }
}

TEST(RecordText, ComesBackAsTheSameRecord) {
  auto record = FullRecord();
  record.spec.command = {"python", "train.py"};  // broken UTF-8 does not come back, by design
  const auto json = ParseJson(RecordText(record));
  ASSERT_TRUE(json) << json.error().what;
  const auto back = RecordFromJson(*json);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, record);
}

TEST(RecordReader, ReadsWhatIsStoredAsTheCodecDoes) {
  auto full = FullRecord();
  full.spec.command = {"python", "a \xc3\xa4 \"b\" \\ \n\t"};
  full.cause.detail = "line\nline";  // \u is for the codec
  full.spec.env = {{"", "empty"}, {"A\"B", "\n"}, {"E", ""}};
  full.advice = {1, 2, 3, "measured"};
  for (const JobRecord& record : {JobRecord{}, PlainRecord(), full}) {
    JobRecord back;
    EXPECT_TRUE(ReadRecordText(RecordText(record), back));
    EXPECT_EQ(back, record);
  }
}

TEST(RecordReader, LeavesToTheCodecWhatItDoesNotKnow) {
  auto ruled = PlainRecord();
  ruled.spec.rules.emplace_back().min_delta = 0.5;
  for (const std::string& text : {RecordText(FullRecord()),
                                  RecordText(ruled),
                                  std::string(),
                                  std::string("{"),
                                  std::string("{}x"),
                                  std::string("{ }"),
                                  std::string("[]"),
                                  std::string(R"({"user":"ann","key":"another order"})"),
                                  std::string(R"({"key":"k","of_a_newer":1})"),
                                  std::string(R"({"key":null})"),
                                  std::string(R"({"key":1})"),
                                  std::string(R"({"retries":01})"),
                                  std::string(R"({"retries":-1})"),
                                  std::string(R"({"retries":1.5})"),
                                  std::string(R"({"retries":4294967296})"),
                                  std::string(R"({"state":"Lost"})"),
                                  std::string("{\"key\":\"a\nb\"}"),
                                  std::string("{\"key\":\"\xff\"}"),
                                  std::string(R"({"key":"\u0041"})"),
                                  std::string(R"({"key":"k")"),
                                  std::string(R"({"spec":{"env":{"A":"1","A":"2"}}})")}) {
    JobRecord record;
    EXPECT_FALSE(ReadRecordText(text, record)) << text;
  }
}

}  // namespace
}  // namespace athanor
