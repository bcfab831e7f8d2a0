#include "run/isolate/cgroup_policy.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

class FakeV2 : public ::testing::Test {
 protected:
  FakeV2() {
    char name[] = "/tmp/athanor-policy-test-XXXXXX";
    root_ = ::mkdtemp(name);
    Put("/proc/self/mountinfo", "25 20 0:22 / /cg rw shared:4 - cgroup2 cgroup2 rw\n");
    Put("/proc/self/cgroup", "0::/own\n");
    Put("/cg/own/cgroup.controllers", "cpu memory pids\n");
    Put("/cg/own/cgroup.subtree_control", "cpu memory pids\n");
    Put("/cg/own/athanor/cgroup.subtree_control", "cpu memory pids\n");
    // What the kernel would put into a new directory.
    for (const char* file : {"memory.max", "memory.swap.max", "cpu.max", "pids.max"}) {
      Put("/cg/own/athanor/a1/" + std::string(file), "");
    }
  }
  ~FakeV2() override { (void)RemoveTree(root_); }

  void Put(const std::string& path, const std::string& text) const {
    ASSERT_TRUE(MakeDirs(DirName(root_ + path)).ok());
    ASSERT_TRUE(ReplaceFile(root_ + path, text).ok());
  }
  std::string Get(const std::string& file) const {
    return ReadFile(root_ + "/cg/own/athanor/a1/" + file).value_or("absent");
  }

  std::string root_;
};

TEST_F(FakeV2, SetsEveryLimitInOneDirectory) {
  CgroupLimits limits;
  limits.memory_bytes = 1 << 30;
  limits.cpus = 1.5;
  limits.pids = 100;
  const auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(root_), "a1", limits);
  EXPECT_EQ("", Join(cgroup.off, "; "));
  ASSERT_EQ(1u, cgroup.joins.size());
  EXPECT_EQ(root_ + "/cg/own/athanor/a1", cgroup.joins[0].dir);
  EXPECT_EQ(2, cgroup.joins[0].version);
  EXPECT_EQ("1073741824", Get("memory.max"));
  EXPECT_EQ("0", Get("memory.swap.max"));
  EXPECT_EQ("150000 100000", Get("cpu.max"));
  EXPECT_EQ("100", Get("pids.max"));
}

TEST_F(FakeV2, SaysWhichLimitIsOffAndKeepsTheOthers) {
  ASSERT_EQ(0, ::unlink((root_ + "/cg/own/athanor/a1/memory.max").c_str()));
  CgroupLimits limits;
  limits.memory_bytes = 1 << 30;
  limits.cpus = 0.001;
  const auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(root_), "a1", limits);
  ASSERT_EQ(1u, cgroup.off.size());
  EXPECT_TRUE(StartsWith(cgroup.off[0], "memory limit: off")) << cgroup.off[0];
  EXPECT_EQ("1000 100000", Get("cpu.max"));
  EXPECT_EQ("32768", Get("pids.max"));
}

// A v1 cpu cgroup without a real-time budget refuses such processes with EINVAL: the job
// then runs without that limit instead of not at all.
TEST_F(FakeV2, ARealTimeAgentLeavesOutTheCpuCgroupAndSaysSo) {
  Put("/proc/self/mountinfo", "25 20 0:22 / /v1 rw shared:4 - cgroup cgroup rw,cpu\n");
  Put("/proc/self/cgroup", "3:cpu:/own\n");
  for (const char* file : {"cpu.cfs_period_us", "cpu.cfs_quota_us", "cgroup.procs", "tasks"}) {
    Put("/v1/own/athanor/a1/" + std::string(file), "");
  }
  Put("/v1/own/athanor/a1/cpu.rt_runtime_us", "0\n");
  const auto prepare = [&] {
    return PrepareAttemptCgroup(CgroupDriver::Detect(root_), "a1", CgroupLimits{});
  };
  EXPECT_NE(nullptr, prepare().Find("cpu"));

  const sched_param real_time{1};
  const sched_param ordinary{0};
  if (::sched_setscheduler(0, SCHED_FIFO, &real_time) != 0) GTEST_SKIP() << "may not be real-time";
  const auto cgroup = prepare();
  ASSERT_EQ(0, ::sched_setscheduler(0, SCHED_OTHER, &ordinary));
  EXPECT_EQ(nullptr, cgroup.Find("cpu"));
  EXPECT_NE(std::string::npos, Join(cgroup.off, "; ").find("CPU limit: off"))
      << Join(cgroup.off, "; ");
}

TEST_F(FakeV2, ANameThatIsAPathGetsNoCgroup) {
  for (const char* name : {"../x", "a/b", "", ".."}) {
    const auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(root_), name, {});
    EXPECT_TRUE(cgroup.joins.empty()) << name;
    EXPECT_EQ(1u, cgroup.off.size());
  }
}

TEST_F(FakeV2, WhatIsAskedForAndNotHeldIsOneLine) {
  ASSERT_EQ(0, ::unlink((root_ + "/cg/own/athanor/a1/memory.max").c_str()));
  CgroupLimits limits;
  limits.memory_bytes = 1 << 30;
  auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(root_), "a1", limits);
  SummarizeOff(cgroup, limits);
  ASSERT_EQ(1u, cgroup.off.size()) << Join(cgroup.off, "; ");
  EXPECT_TRUE(StartsWith(cgroup.off[0], "limits: memory 1 GiB held by a watch (no cgroup "))
      << cgroup.off[0];
}

// Planted bug: a line for each cgroup that could not be made, at every job of an ordinary user.
TEST(CgroupPolicy, WithoutAnyCgroupOneLineSaysSo) {
  const auto off = [](const CgroupLimits& asked) {
    auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect("/no/such/root"), "a1", asked);
    SummarizeOff(cgroup, asked);
    return cgroup.off;
  };
  const std::string who = ::geteuid() == 0 ? "here" : "for this user";
  EXPECT_EQ((std::vector<std::string>{"no cgroup " + who +
                                      ": processes not limited, usage comes from /proc"}),
            off({}));
  CgroupLimits asked;
  asked.cpus = 2;
  EXPECT_EQ((std::vector<std::string>{
                "limits: CPUs not limited (no cgroup " + who + "); processes not limited",
                "no cgroup " + who + ": usage comes from /proc"}),
            off(asked));
}

TEST(CgroupPolicy, WithoutCgroupsEverythingIsOffAndSaid) {
  const auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect("/no/such/root"), "a1", {});
  EXPECT_TRUE(cgroup.joins.empty());
  EXPECT_EQ(4u, cgroup.off.size());
  EXPECT_EQ(nullptr, cgroup.Find("memory"));
  EXPECT_TRUE(KillAttemptCgroup(cgroup).ok());
  EXPECT_TRUE(RemoveAttemptCgroup(cgroup).ok());
}

// Planted bug: raising v1's memory limit above memsw, which the kernel refuses.
TEST(CgroupPolicy, RealLimitsCanBeSetAndRaised) {
  const std::string name = "test-raise-" + std::to_string(::getpid());
  const auto driver = CgroupDriver::Detect();
  for (uint64_t megabytes : {64, 256, 128}) {
    CgroupLimits limits;
    limits.memory_bytes = megabytes << 20;
    limits.cpus = 0.5;
    const auto cgroup = PrepareAttemptCgroup(driver, name, limits);
    const auto* memory = cgroup.Find("memory");
    if (memory == nullptr) GTEST_SKIP() << Join(cgroup.off, "; ");
    EXPECT_EQ("", Join(cgroup.off, "; "));
    const char* file = memory->version == 1 ? "memory.limit_in_bytes" : "memory.max";
    EXPECT_EQ(megabytes << 20, *CgroupDriver::ReadNumber(memory->dir, file));
    EXPECT_TRUE(RemoveAttemptCgroup(cgroup).ok() || megabytes != 128);
  }
}

TEST(CgroupPolicy, AnOrdinaryUserIsToldThatLimitsAreOff) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to become nobody";
  EXPECT_TRUE(test::AsNobody([] {
    const auto cgroup = PrepareAttemptCgroup(CgroupDriver::Detect(), "nobody", {});
    return cgroup.joins.empty() && cgroup.off.size() == 4 &&
           cgroup.off[0].find("memory limit: off") == 0;
  }));
}

}  // namespace
}  // namespace athanor
