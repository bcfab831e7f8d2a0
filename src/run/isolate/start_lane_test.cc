#include "run/isolate/start_lane.h"

#include <unistd.h>

#include "base/text/text.h"
#include "run/isolate/cgroup_driver.h"
#include "run/isolate/cgroup_testing.h"

namespace athanor {
namespace {

// A v1 machine with a lane that was made before: files of a cgroup cannot be made by opening them.
struct V1Machine : FakeMachine {
  explicit V1Machine(const std::string& own, const std::string& autogroup = "1\n") {
    Put("/proc/self/mountinfo", "31 24 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
    Put("/proc/self/cgroup", "1:cpu:" + own + "\n");
    Put("/proc/sys/kernel/sched_autogroup_enabled", autogroup);
    Put("/sys/fs/cgroup/cpu/tasks", "");
    Put("/sys/fs/cgroup/cpu/cgroup.procs", "");
    Put("/sys/fs/cgroup/cpu/athanor-start/tasks", "");
    Put("/sys/fs/cgroup/cpu/athanor-start/cpu.shares", "1024\n");
  }
  bool entered() const { return Get("/sys/fs/cgroup/cpu/athanor-start/tasks") == "0"; }
};

TEST(StartLane, HasALargerShareAndTakesThisProcess) {
  const V1Machine machine("/");
  EnterStartLane(machine.root);
  EXPECT_TRUE(machine.entered());
  EXPECT_TRUE(StartsWith(machine.Get("/sys/fs/cgroup/cpu/athanor-start/cpu.shares"), "10240"));
}

TEST(StartLane, IsNotForWhomSessionsDoNotCount) {
  const V1Machine elsewhere("/user.slice");
  EnterStartLane(elsewhere.root);
  EXPECT_FALSE(elsewhere.entered()) << "below the root there are no autogroups";
  const V1Machine off("/", "0\n");
  EnterStartLane(off.root);
  EXPECT_FALSE(off.entered());
}

// Planted bug: the lane is taken for a place of its own, and what is made below it has its share.
TEST(StartLane, IsLeftForWhereItLies) {
  const V1Machine machine("/athanor-start");
  const auto driver = CgroupDriver::Detect(machine.root);
  EXPECT_EQ(driver.Find("cpu")->own_dir, machine.root + "/sys/fs/cgroup/cpu");
  LeaveStartLane(machine.root);
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/cpu/tasks"), "0");
  MoveFromStartLane({42}, machine.root);
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/cpu/cgroup.procs"), "42");
  EnterStartLane(machine.root);
  EXPECT_FALSE(machine.entered()) << "it is there";
}

TEST(StartLane, IsTakenAwayByTheLastOne) {
  const V1Machine machine("/athanor-start");
  const std::string lane = machine.root + "/sys/fs/cgroup/cpu/athanor-start";
  CloseStartLane(machine.root);
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/cpu/tasks"), "0");
  EXPECT_TRUE(Exists(lane)) << "there is something in it";
  for (const char* file : {"/tasks", "/cpu.shares"}) ::unlink((lane + file).c_str());
  CloseStartLane(machine.root);
  EXPECT_FALSE(Exists(lane));
}

TEST(StartLane, IsALeafOfTheRootOnAV2Machine) {
  const FakeMachine machine;
  machine.Put("/proc/self/mountinfo",
              "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  machine.Put("/proc/self/cgroup", "0::/\n");
  machine.Put("/proc/sys/kernel/sched_autogroup_enabled", "1\n");
  machine.Put("/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
  machine.Put("/sys/fs/cgroup/cgroup.subtree_control", "");
  machine.Put("/sys/fs/cgroup/athanor-start/cpu.weight", "");
  machine.Put("/sys/fs/cgroup/athanor-start/cgroup.procs", "");
  EnterStartLane(machine.root);
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/cgroup.subtree_control"), "+cpu");
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/athanor-start/cpu.weight"), "1000");
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/athanor-start/cgroup.procs"), "0");
}

TEST(StartLane, WhoIsElsewhereMovesNobody) {
  const V1Machine machine("/");
  LeaveStartLane(machine.root);
  MoveFromStartLane({42}, machine.root);
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/cpu/tasks"), "");
  EXPECT_EQ(machine.Get("/sys/fs/cgroup/cpu/cgroup.procs"), "");
}

}  // namespace
}  // namespace athanor
