#include <gtest/gtest.h>

#include "base/text/text.h"
#include "run/supervisor/exit_record.h"
#include "run/supervisor/supervisor_plan.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {
namespace {

SupervisorPlan FullPlan() {
  SupervisorPlan plan;
  plan.ranks = {{{"python3", "train.py", ""}, {"A=1", "B="}, "/w", "/l/out0", "/l/err0"},
                {{"sh", "-c", "x\ny"}, {}, "/", "/l/out1", "/l/out1"}};
  plan.hostname = "algo-1";
  plan.mounts = {{"/a/ml", "/opt/ml", false, true}, {"/a/hosts", "/etc/hosts", true, false}};
  plan.hide = {"/srv/athanor"};
  plan.cgroups = {{"/sys/fs/cgroup/memory/x", 1, {"memory"}},
                  {"/sys/fs/cgroup/x", 2, {"cpu", "pids"}}};
  plan.uid = 1000;
  plan.gid = 100;
  plan.no_new_privs = false;
  plan.drop_capabilities = false;
  plan.rlimits = {{"core", 0, 0}, {"nofile", 1024, UINT64_MAX}};
  plan.log_cap_bytes = 7;
  plan.stop_grace_ms = 8;
  plan.peer_grace_ms = 9;
  plan.linger_ms = 10;
  plan.status_path = "/l/status";
  plan.started_path = "/l/started";
  plan.exit_path = "/l/exit";
  return plan;
}

TEST(SupervisorPlan, SurvivesTheFileUnchanged) {
  const auto bytes = SerializePlan(FullPlan());
  ASSERT_TRUE(bytes.has_value()) << bytes.error().what;
  const auto parsed = ParsePlan(*bytes);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().what;
  EXPECT_EQ(FullPlan(), *parsed);
}

TEST(SupervisorPlan, RefusesWhatTheSupervisorCouldNotCarryOut) {
  const auto refused = [](auto change) {
    SupervisorPlan plan = FullPlan();
    change(plan);
    return !SerializePlan(plan).has_value();
  };
  EXPECT_TRUE(refused([](auto& p) { p.ranks.clear(); }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks.resize(1025, p.ranks[0]); }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks[0].argv.clear(); }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks[0].argv[0] = std::string("a\0b", 3); }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks[0].env = {"NOEQUALS"}; }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks[0].env = {"=x"}; }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks[0].cwd = "relative"; }));
  EXPECT_TRUE(refused([](auto& p) { p.ranks[0].stdout_path.clear(); }));
  EXPECT_TRUE(refused([](auto& p) { p.mounts[0].target = "/opt/../etc"; }));
  EXPECT_TRUE(refused([](auto& p) { p.hide = {"srv"}; }));
  EXPECT_TRUE(refused([](auto& p) { p.hostname = "bad\nname"; }));
  EXPECT_TRUE(refused([](auto& p) { p.hostname = std::string(65, 'a'); }));
  EXPECT_TRUE(refused([](auto& p) { p.rlimits = {{"cores", 0, 0}}; }));
  EXPECT_TRUE(refused([](auto& p) { p.rlimits = {{"core", 2, 1}}; }));
  EXPECT_TRUE(refused([](auto& p) { p.exit_path.clear(); }));
  EXPECT_TRUE(refused([](auto& p) { p.linger_ms = -1; }));
}

TEST(SupervisorPlan, RefusesUnknownAndRepeatedKeys) {
  const std::string bytes = *SerializePlan(FullPlan());
  const auto replaced = [&](std::string from, std::string to) {
    const std::string changed = ReplaceAll(bytes, from, to);
    EXPECT_NE(bytes, changed);
    return ParsePlan(changed).has_value();
  };
  EXPECT_FALSE(replaced("hostname", "hostnamf"));
  EXPECT_FALSE(replaced("peer_grace_ms", "stop_grace_ms"));
  EXPECT_FALSE(replaced("mount.read_only", "mount.read_onlx"));
  EXPECT_FALSE(replaced("cwd", "env"));
}

TEST(ExitRecord, SurvivesTheFileUnchanged) {
  ExitRecord record;
  record.ranks.resize(2);
  record.ranks[0] = {
      137, 9, true, 100, 200, 300, {11, 12, 0, "", ""}, {1, 2, true, 28}, {3, 4, false, 0}};
  record.ranks[1].start = {0, 0, 2, "exec", "/no such\nprogram"};
  record.ranks[1].exit_code = 127;
  record.ranks[0].ended = 2;
  record.ranks[1].ended = 1;
  record.first_failed_rank = 1;
  record.fell_by_itself = true;
  record.cgroup = {1, 2, 3, 4, 5};
  record.orphan_cpu_us = 6;
  record.orphans = 7;
  record.disk_full = true;
  record.stop_signal = 15;
  record.stop_to_end_ms = 8;
  record.killed = true;
  record.leftovers_killed = true;
  record.setup_error = "mount /x: y";
  record.setup_code = "denied";
  record.start_wall_ms = 9;
  record.end_wall_ms = 10;
  record.start_boottime_ms = 11;
  record.end_boottime_ms = 12;
  record.off = {"one", "two"};
  const auto parsed = ParseExit(*SerializeExit(record));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().what;
  EXPECT_EQ(record, *parsed);
}

TEST(ExitRecord, RefusesUnknownKeys) {
  ExitRecord record;
  record.ranks.resize(1);
  const std::string bytes = *SerializeExit(record);
  EXPECT_FALSE(ParseExit(ReplaceAll(bytes, "killed", "kilted")).has_value());
  EXPECT_FALSE(ParseExit(ReplaceAll(bytes, "out.written", "oux.written")).has_value());
}

TEST(SupervisorStatus, BothRecordsSurviveTheFileUnchanged) {
  const SupervisorStatus status{4711, 123456, "0a1b"};
  EXPECT_EQ(status, *ParseStatus(*SerializeStatus(status)));
  StartedRecord started;
  started.ranks = {{100, 2, 0, "", ""}, {0, 0, 13, "exec", "./x"}};
  started.wall_ms = 1;
  started.boottime_ms = 2;
  started.off = {"mount namespace: no"};
  EXPECT_EQ(started, *ParseStarted(*SerializeStarted(started)));
  EXPECT_FALSE(ParseStatus(*SerializeStarted(started)).has_value());
}

}  // namespace
}  // namespace athanor
