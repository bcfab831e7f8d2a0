#include "run/isolate/cgroup_driver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/files.h"
#include "run/isolate/cgroup_testing.h"

namespace athanor {
namespace {

TEST(CgroupDriver, FindsControllersOnAPureV2Machine) {
  const FakeMachine machine;
  machine.Put("/proc/self/mountinfo",
              "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  machine.Put("/proc/self/cgroup", "0::/user.slice/job.scope\n");
  machine.Put("/sys/fs/cgroup/user.slice/job.scope/cgroup.controllers", "cpu memory pids\n");
  const auto driver = CgroupDriver::Detect(machine.root);
  const auto* memory = driver.Find("memory");
  ASSERT_NE(nullptr, memory);
  EXPECT_EQ(2, memory->version);
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/user.slice/job.scope", memory->own_dir);
  EXPECT_EQ(memory, driver.Find("cpuacct"));
  EXPECT_EQ(memory, driver.Unified());
}

// Planted bug: looking only into the own folder, which a session is often given nothing in.
TEST(CgroupDriver, TakesTheRootOfAV2MachineWhereOnlyThatGivesControllers) {
  const FakeMachine machine;
  machine.Put("/proc/self/mountinfo",
              "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  machine.Put("/proc/self/cgroup", "0::/user.slice/session-1.scope\n");
  machine.Put("/sys/fs/cgroup/user.slice/session-1.scope/cgroup.controllers", "pids\n");
  machine.Put("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids io\n");
  // Nobody may make cgroups at the root: what there is stays ours.
  EXPECT_EQ(nullptr, CgroupDriver::Detect(machine.root).Find("memory"));
  machine.Put("/sys/fs/cgroup/cgroup.subtree_control", "\n");
  const auto driver = CgroupDriver::Detect(machine.root);
  ASSERT_NE(nullptr, driver.Find("memory"));
  EXPECT_EQ(machine.root + "/sys/fs/cgroup", driver.Find("memory")->own_dir);
  EXPECT_EQ(driver.Find("memory"), driver.Find("pids"));
  EXPECT_EQ(driver.Find("memory"), driver.Find("cpuacct"));
  // Not for what is of no use to us.
  machine.Put("/sys/fs/cgroup/user.slice/session-1.scope/cgroup.controllers", "cpu memory pids\n");
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/user.slice/session-1.scope",
            CgroupDriver::Detect(machine.root).Find("memory")->own_dir);
}

TEST(CgroupDriver, FindsEachControllerOfAHybridMachineWhereItLives) {
  const FakeMachine machine;
  machine.Put("/proc/self/mountinfo",
              "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
              "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  machine.Put("/proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/s\n0::/u\n");
  machine.Put("/sys/fs/cgroup/unified/u/cgroup.controllers", "pids hugetlb\n");
  const auto driver = CgroupDriver::Detect(machine.root);
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/memory/a/b", driver.Find("memory")->own_dir);
  EXPECT_EQ(1, driver.Find("memory")->version);
  EXPECT_EQ(driver.Find("cpu"), driver.Find("cpuacct"));
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/cpu,cpuacct", driver.Find("cpu")->own_dir);
  EXPECT_EQ(2, driver.Find("pids")->version);
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/unified/u", driver.Find("pids")->own_dir);
}

TEST(CgroupDriver, AContainersMountStartsAtItsOwnPart) {
  const FakeMachine machine;
  machine.Put("/proc/self/mountinfo",
              "35 31 0:32 /docker/abc /sys/fs/cgroup/my\\040mem rw - cgroup cgroup rw,memory\n"
              "36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
              "37 31 0:34 /docker/ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  machine.Put("/proc/self/cgroup", "4:memory:/docker/abc/x\n5:pids:/../../y\n6:cpu:/docker/abc\n");
  const auto driver = CgroupDriver::Detect(machine.root);
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/my mem/x", driver.Find("memory")->own_dir);
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/pids", driver.Find("pids")->own_dir);
  EXPECT_EQ(machine.root + "/sys/fs/cgroup/cpu/docker/abc", driver.Find("cpu")->own_dir);
}

TEST(CgroupDriver, AMachineWithoutCgroupsHasNone) {
  const FakeMachine machine;
  const auto driver = CgroupDriver::Detect(machine.root);
  EXPECT_TRUE(driver.hierarchies().empty());
  EXPECT_EQ(nullptr, driver.Find("memory"));
}

// Planted bug: enabling controllers only in the last parent: the kernel then
// refuses, because a controller is given on level by level.
TEST(CgroupDriver, EnablesControllersInEveryParentFromOurOwnDown) {
  const FakeMachine machine;
  CgroupHierarchy v2;
  v2.mount_point = machine.root + "/cg";
  v2.own_dir = machine.root + "/cg/own";
  machine.Put("/cg/own/cgroup.subtree_control", "cpu");
  machine.Put("/cg/own/athanor/cgroup.subtree_control", "");
  ASSERT_TRUE(CgroupDriver::Make(v2, v2.own_dir + "/athanor/a1", {"memory"}).ok());
  EXPECT_TRUE(Exists(v2.own_dir + "/athanor/a1"));
  // Plain files keep the last write.
  EXPECT_EQ("+memory", ReadFile(v2.own_dir + "/cgroup.subtree_control")->substr(0, 7));
  EXPECT_EQ("+memory", *ReadFile(v2.own_dir + "/athanor/cgroup.subtree_control"));
  ASSERT_TRUE(CgroupDriver::Make(v2, v2.own_dir + "/athanor/a2", {}).ok());
}

TEST(CgroupDriver, ReadsNumbersAndKeyedNumbersStrictly) {
  const FakeMachine machine;
  machine.Put("/d/n", "123\n");
  machine.Put("/d/max", "max\n");
  machine.Put("/d/keyed", "low 0\nmax 7\noom_kill 2\n");
  const std::string dir = machine.root + "/d";
  EXPECT_EQ(123u, *CgroupDriver::ReadNumber(dir, "n"));
  EXPECT_EQ(ErrorCode::kCorrupt, CgroupDriver::ReadNumber(dir, "max").error().code);
  EXPECT_EQ(2u, *CgroupDriver::ReadKeyed(dir, "keyed", "oom_kill"));
  EXPECT_EQ(ErrorCode::kNotFound, CgroupDriver::ReadKeyed(dir, "keyed", "oom").error().code);
  EXPECT_EQ(ErrorCode::kNotFound, CgroupDriver::Write(dir, "absent", "1").error().code);
}

// A real cgroup of either version, with a process in it.
void KillAndRemove(const CgroupHierarchy& hierarchy) {
  const std::string dir = hierarchy.own_dir + "/athanor-kill-" + std::to_string(::getpid());
  if (const Status made = CgroupDriver::Make(hierarchy, dir, {}); !made.ok()) {
    GTEST_SKIP() << made.error().what;
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!CgroupDriver::Write(dir, "cgroup.procs", "0").ok()) ::_exit(1);
    if (::fork() == 0) ::signal(SIGTERM, SIG_IGN);
    while (true) ::pause();
  }
  for (size_t count = 0; count < 2;) {
    const auto pids = CgroupDriver::Processes(dir);
    ASSERT_TRUE(pids.has_value());
    count = pids->size();
    ASSERT_EQ(0, ::waitpid(pid, nullptr, WNOHANG)) << "could not join " << dir;
  }
  EXPECT_FALSE(::rmdir(dir.c_str()) == 0);
  // The child must be collected while Kill waits for the list to empty.
  const pid_t killer = ::fork();
  if (killer == 0) ::_exit(CgroupDriver::Kill(dir).ok() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(pid, ::waitpid(pid, &status, 0));
  EXPECT_EQ(SIGKILL, WTERMSIG(status));
  ASSERT_EQ(killer, ::waitpid(killer, &status, 0));
  EXPECT_EQ(0, WEXITSTATUS(status));
  EXPECT_TRUE(CgroupDriver::Remove(dir).ok());
  EXPECT_FALSE(Exists(dir));
  EXPECT_TRUE(CgroupDriver::Remove(dir).ok());
  EXPECT_TRUE(CgroupDriver::Kill(dir).ok());
}

TEST(CgroupDriver, KillsAndRemovesARealV1Cgroup) {
  const auto driver = CgroupDriver::Detect();
  for (const auto& hierarchy : driver.hierarchies()) {
    if (hierarchy.version == 1) return KillAndRemove(hierarchy);
  }
  GTEST_SKIP() << "no v1 hierarchy on this machine";
}

TEST(CgroupDriver, KillsAndRemovesARealV2Cgroup) {
  const auto driver = CgroupDriver::Detect();
  if (driver.Unified() == nullptr) GTEST_SKIP() << "no v2 hierarchy on this machine";
  KillAndRemove(*driver.Unified());
}

}  // namespace
}  // namespace athanor
