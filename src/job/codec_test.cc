#include "job/codec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/io/hash.h"
#include "base/text/json.h"
#include "job/causes.h"
#include "job/record_reader.h"

namespace athanor {
namespace {

JobRecord FullRecord() {
  JobRecord record;
  record.id = JobId::New();
  record.key = "k";
  record.user = "ann";
  record.state = JobState::kRunning;
  record.created = {1'700'000'000'123};
  record.updated = {1'700'000'001'000};
  record.event_seq = 7;
  record.cause = {"waiting_cpus", "needs 4", "ath ps", "more"};
  record.stop = StopRequest{{"user_stop", "bye", "", ""}, "ann", {1'700'000'002'000}, Millis(5)};
  record.simulated = true;
  record.price = {1'006'000, "USD", "catalogue"};
  record.spec.name = "brisk-heron";
  record.spec.command = {"python", "train.py", "--lr", "${lr}"};
  record.spec.params = {{"lr", "1e-4", Param::Kind::kNumber}, {"on", "true", Param::Kind::kBool}};
  record.spec.env = {{"A", "1"}};
  record.spec.limits.max_runtime = Millis(60'000);
  record.spec.data = {{"train", "/data", "shared"}};
  record.spec.metrics = {{"loss", "loss=(\\S+)", "step=(\\d+)"}};
  record.spec.secrets = {{"TOKEN", "command", "vault read x", "file", true}};
  record.spec.priority = -3;
  Attempt attempt;
  attempt.id = AttemptId::New();
  attempt.number = 2;
  attempt.placement = {"process", 1500, 1ull << 40, {0, 3}, {2, 1}, true};
  attempt.held_ms = 1234;
  attempt.exit = ExitInfo{-1, 9, true, false, true, 1, 2, 3, 1, 4, "no"};
  attempt.exit->oom_child = "python3, pid 7";
  attempt.off = {"pid namespace"};
  attempt.spot = true;
  attempt.micros_per_hour = 95'400;
  attempt.interrupt = StopRequest{{"preempted", "taken", "", ""}, "ann", {77}, Millis(3'000)};
  attempt.resumed_from = "1-3";
  attempt.resumed_step = 41;
  attempt.saved = CheckpointInfo{"2-1", 2, 99, 3, 4, 5, {88}, 6, 7, 8};
  attempt.lost_ms = 9;
  record.attempts = {attempt};
  record.spec.resources.spot = {true, Millis(1), true, Millis(2), Millis(3), Millis(4), 5};
  record.spec.checkpoints = {"shared", Millis(1), 5, 2, "loss", "max"};
  record.spec.rules = {{"r", "above", "loss", 2.5, 10, 0.125, "max", Millis(5), "stop", "u"}};
  record.spec.retry = {2, {"exit:3"}, Millis(7), {"ml.m5.xlarge"}};
  record.advice = {60'000, 1'000, 3'600'000, "assumed"};
  record.firings = {{"r", "nan", "loss", 7, "NaN", "", "stop", "look", {99}}};
  record.retries = 1;
  record.outputs = {
      {"model.tar.gz", std::string(64, 'a'), 12, 3},
      {"files", std::string(64, 'b'), 9, 2, "model.pt", {1, 5, {{"big", 5, "too large"}}}}};
  record.spec.outputs = {false, {"*.pt"}, 7};
  AddMissingHosts(record);
  return record;
}

TEST(Codec, ARecordComesBackAsItWas) {
  auto record = FullRecord();
  auto text = DumpJson(ToJson(record));
  auto parsed = ParseJson(text);
  ASSERT_TRUE(parsed) << parsed.error().what;
  auto back = RecordFromJson(*parsed);
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(*back, record);
}

// Planted bug: leave AddMissingHosts out of one of the two readers. A job that ran while its server
// was replaced by this version would have no host that could report.
TEST(Codec, AnAttemptOfBeforeThereWereHostsIsReadWithOne) {
  constexpr std::string_view kStored =
      R"({"id":"01m7gsc4mekgvjr936gmvcrgyk","key":"k","state":"Running",)"
      R"("last_seen":"2026-11-15T23:41:11.279Z","event_seq":4,"attempts":[)"
      R"({"id":"01m7gsc4mekgvjr936gnahpx5n","number":1,"placement":{"backend":"process",)"
      R"("cpu_millis":1000,"memory_bytes":0,"gpus":[1],"simulated":false},)"
      R"("handle":"01m7gsc4mekgvjr936gnahpx5n","placed":"2026-11-15T23:41:11.182Z",)"
      R"("prepared":"2026-11-15T23:41:11.201Z","started":"2026-11-15T23:41:11.279Z",)"
      R"("held_ms":66,"setup_ms":21}]})";
  JobRecord quick;
  ASSERT_TRUE(ReadRecordText(kStored, quick));
  const auto slow = RecordFromJson(*ParseJson(kStored));
  ASSERT_TRUE(slow);
  EXPECT_EQ(quick, *slow);
  const auto& attempt = *quick.current();
  ASSERT_EQ(attempt.hosts.size(), 1u);
  const auto& host = attempt.hosts.front();
  EXPECT_EQ(host.name, "algo-1");
  EXPECT_EQ(host.handle, attempt.handle);
  EXPECT_EQ(host.placement, attempt.placement);
  EXPECT_EQ(host.up, attempt.prepared);
  EXPECT_EQ(host.started, attempt.started);
  EXPECT_EQ(host.exited.ms, 0);
  EXPECT_EQ(host.over.ms, 0);
  EXPECT_EQ(host.last_seen, quick.last_seen);
  EXPECT_EQ(host.held_ms, 66);
}

TEST(Codec, AGangPaysForEachOfItsHosts) {
  JobRecord record;
  record.price.micros_per_hour = 3'600'000;
  auto& attempt = record.attempts.emplace_back();
  attempt.held_ms = 5'000;  // of the host that held it longest
  attempt.hosts.resize(2);
  attempt.hosts[0].held_ms = 5'000;
  attempt.hosts[1].held_ms = 3'000;
  EXPECT_EQ(CostMicros(record), 8'000);
}

TEST(Codec, MembersOfANewerProgramAreIgnoredAndWrongTypesAreNot) {
  auto json = ToJson(FullRecord());
  json["from_the_future"] = 1;
  EXPECT_TRUE(RecordFromJson(json));
  json["simulated"] = "yes";
  auto bad = RecordFromJson(json);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().what.find("simulated"), std::string::npos);
}

TEST(Codec, WhatACallerSaysIsRefusedWhenItIsNotKnown) {
  auto json = ToJson(JobSpec{});
  EXPECT_TRUE(SpecFromCaller(json));
  json["resources"]["colour"] = "red";
  auto refused = SpecFromCaller(json);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("colour"), std::string::npos);
  EXPECT_TRUE(SpecFromJson(json));
}

TEST(Codec, NumbersThatDoNotFitAreRefusedNotCut) {
  auto json = ToJson(JobSpec{});
  json["resources"]["cpu_millis"] = (uint64_t{1} << 32) + 1;
  EXPECT_FALSE(SpecFromJson(json));
  json["resources"]["cpu_millis"] = -1;
  EXPECT_FALSE(SpecFromJson(json));
}

TEST(Codec, SpecHashTellsSpecsApartAndSameRunLooksAtWhatMatters) {
  auto a = FullRecord().spec;
  auto b = a;
  EXPECT_EQ(SpecHash(a), SpecHash(b));
  b.name = "other";
  EXPECT_NE(SpecHash(a), SpecHash(b));
  EXPECT_EQ(SameRunHash(a), SameRunHash(b));
  b.params[0].value = "2e-4";
  EXPECT_NE(SameRunHash(a), SameRunHash(b));
}

TEST(Cost, IsHeldSecondsOfAllAttemptsAtTheFrozenPrice) {
  auto record = FullRecord();
  record.attempts.front().micros_per_hour = -1;
  record.attempts.front().held_ms = 3'599'001;
  EXPECT_EQ(CostMicros(record), 1'006'000);
  record.attempts.push_back(record.attempts.front());
  EXPECT_EQ(CostMicros(record), 1'006'000ll * 7199 / 3600);
  record.attempts.back().micros_per_hour = 500'000;  // on a machine that may be taken away
  EXPECT_EQ(CostMicros(record), 1'006'000 + 500'000);
}

TEST(Causes, KindsAndCodesAreUnique) {
  for (const auto& row : Causes()) {
    EXPECT_EQ(FindCause(row.name()), &row) << row.name();
    EXPECT_EQ(&RowOf(row.kind), &row) << row.name();
    EXPECT_EQ(FindCause(row.code), &row) << row.code;
    EXPECT_FALSE(row.explain.empty()) << row.name();
  }
  EXPECT_EQ(FindCause("no such"), nullptr);
}

// A key that was used before an upgrade belongs to the same job after it.
TEST(SpecHash, OfOneRankIsWhatItWasBeforeThereWereNodes) {
  JobSpec spec;
  spec.command = {"python3", "train.py"};
  spec.resources.cpu_millis = 2'000;
  Json before = ToJson(spec);
  for (const char* key : {"nodes", "nodes_most", "processes"}) {
    ASSERT_EQ(before["resources"].erase(key), 1u);
  }
  EXPECT_EQ(SpecHash(spec), Sha256Hex(DumpJson(before)));
  const auto of_one = SpecHash(spec);
  spec.resources.processes = 2;
  EXPECT_NE(SpecHash(spec), of_one);
}

TEST(Causes, OneOfAnotherVersionSurvivesARoundTrip) {
  const Cause cause{std::string("of_a_newer_version"), "what", "next", "evidence"};
  const auto read = CauseFromJson(ToJson(cause));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, cause);
  for (const auto& row : Causes()) EXPECT_FALSE(read->Is(row.kind));
}

TEST(Errors, AreBuiltByName) {
  const Error error =
      Error{ErrorCode::kConflict, "what", "hint"}.Why("why").Id("ATH-R0005").Where("a:1");
  EXPECT_EQ(error, (Error{ErrorCode::kConflict, "what", "hint", "why", "ATH-R0005", "a:1"}));
}

}  // namespace
}  // namespace athanor
