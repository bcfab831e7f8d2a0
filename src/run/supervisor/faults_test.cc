#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/isolate/cgroup_policy.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using test::TestAttempt;

TEST(SupervisorExit, PassesTheScriptsCodeThrough) {
  for (int code : {0, 1, 2, 42, 126, 127, 128, 137, 200, 254, 255}) {
    TestAttempt attempt;
    attempt.Shell("exit " + std::to_string(code));
    const ExitRecord record = attempt.Run();
    EXPECT_EQ(code, record.ranks[0].exit_code);
    EXPECT_EQ(0, record.ranks[0].signal);
    EXPECT_EQ(0, record.ranks[0].start.spawn_errno);
    EXPECT_EQ(code == 0 ? -1 : 0, record.first_failed_rank);
  }
}

// Planted bug: WEXITSTATUS without WIFEXITED: every signal then reads as code 0.
TEST(SupervisorExit, NamesTheSignal) {
  for (int number : {SIGKILL, SIGTERM, SIGABRT, SIGHUP, SIGUSR1}) {
    TestAttempt attempt;
    attempt.Shell("kill -" + std::to_string(number) + " $$");
    const ExitRecord record = attempt.Run();
    EXPECT_EQ(number, record.ranks[0].signal);
    EXPECT_EQ(128 + number, record.ranks[0].exit_code);
  }
}

TEST(SupervisorExit, TellsASegmentationFaultAndLeavesNoCore) {
  TestAttempt attempt;
  attempt.Python("import ctypes\nctypes.string_at(0)\n");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ(SIGSEGV, record.ranks[0].signal);
  EXPECT_FALSE(record.ranks[0].core);
}

TEST(SupervisorExit, MeasuresTimeAndMemory) {
  TestAttempt attempt;
  attempt.Python("x = b'x' * (64 << 20)\nn = 0\nfor i in range(2000000): n += i\n");
  const ExitRecord record = attempt.Run();
  EXPECT_GT(record.ranks[0].max_rss_kb, 64 << 10);
  EXPECT_GT(record.ranks[0].cpu_us, 1000);
  EXPECT_GE(record.end_boottime_ms - record.start_boottime_ms, record.ranks[0].wall_ms);
  EXPECT_GT(record.start_wall_ms, 1'700'000'000'000);
}

struct SpawnCase {
  const char* program;
  int error;
  int code;
  const char* step;
};

// Planted bug: exec's failure reported as the child's exit code only: a script
// that exits 127 by itself looks the same.
TEST(SupervisorExit, TellsAProgramThatCouldNotBeStarted) {
  const SpawnCase cases[] = {
      {"no-such-program-anywhere", ENOENT, 127, "exec"},
      {"./missing", ENOENT, 127, "exec"},
      {"./plain", EACCES, 126, "exec"},
      {"./badinterp", ENOENT, 127, "interpreter"},
      {"./notaprogram", ENOEXEC, 126, "exec"},
      {"/", EACCES, 126, "exec"},
  };
  for (const auto& c : cases) {
    TestAttempt attempt;
    attempt.WriteScript("badinterp", "#!/no/such/interpreter\n");
    attempt.WriteScript("notaprogram", "just text\n");
    ASSERT_TRUE(ReplaceFile(attempt.path("plain"), "#!/bin/sh\n", 0644).ok());
    attempt.plan.ranks[0].argv = {c.program};
    const ExitRecord record = attempt.Run();
    EXPECT_EQ(c.error, record.ranks[0].start.spawn_errno) << c.program;
    EXPECT_EQ(c.step, record.ranks[0].start.spawn_step) << c.program;
    EXPECT_EQ(c.program, record.ranks[0].start.spawn_path);
    EXPECT_EQ(c.code, record.ranks[0].exit_code) << c.program;
    EXPECT_EQ(c.error, attempt.started().ranks[0].spawn_errno);
  }
}

TEST(SupervisorExit, TellsAMissingWorkingDirectory) {
  TestAttempt attempt;
  attempt.plan.ranks[0].cwd = "/no/such/folder";
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("chdir", record.ranks[0].start.spawn_step);
  EXPECT_EQ("/no/such/folder", record.ranks[0].start.spawn_path);
  EXPECT_EQ(ENOENT, record.ranks[0].start.spawn_errno);
}

TEST(SupervisorExit, ARankThatCannotStartEndsTheOthers) {
  TestAttempt attempt;
  attempt.AddRank();
  attempt.Shell("exec sleep 1000", 0);
  attempt.plan.ranks[1].argv = {"/no/such/program"};
  const ExitRecord record = attempt.Run();
  EXPECT_EQ(1, record.first_failed_rank);
  EXPECT_EQ(SIGTERM, record.ranks[0].signal);
}

// Planted bug: reaping only the rank's own pid: a thousand zombies stay, and the supervisor never
// sees that no process is left.
TEST(SupervisorExit, ReapsAThousandOrphans) {
  TestAttempt attempt;
  attempt.Python(R"(
import os
for i in range(1000):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
print('made', flush=True)
)");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("made\n", attempt.out());
  EXPECT_EQ(0, record.ranks[0].exit_code);
  EXPECT_GE(record.orphans, 1000);
  EXPECT_FALSE(record.leftovers_killed);
}

TEST(SupervisorExit, KillsAThousandChildrenLeftBehind) {
  for (bool namespaces : {true, false}) {
    TestAttempt attempt;
    if (!namespaces) attempt.isolation = Isolation();
    attempt.Python(R"(
import os, signal
for i in range(1000):
    if os.fork() == 0:
        signal.pause()
print('made', flush=True)
)");
    const ExitRecord record = attempt.Run();
    EXPECT_EQ(0, record.ranks[0].exit_code);
    EXPECT_TRUE(record.leftovers_killed);
    EXPECT_EQ(1000, record.orphans);
  }
}

TEST(SupervisorExit, NamesTheRankThatFellFirstAndStopsTheOthers) {
  TestAttempt attempt;
  attempt.AddRank();
  attempt.AddRank();
  ASSERT_EQ(0, ::mkfifo(attempt.path("gate").c_str(), 0600));
  attempt.Shell("trap 'exit 9' TERM; echo up > $DIR/up0; while :; do sleep 0.01; done", 0);
  attempt.Shell("read x < gate; exit 5", 1);
  attempt.Shell("trap '' TERM; echo up > $DIR/up2; while :; do sleep 0.01; done", 2);
  attempt.plan.peer_grace_ms = 300;
  attempt.Launch();
  attempt.Await("up0");
  attempt.Await("up2");
  ASSERT_TRUE(WriteAll(UniqueFd(::open(attempt.path("gate").c_str(), O_WRONLY)).get(), "\n").ok());
  attempt.WaitForEnd();
  const ExitRecord record = attempt.record();
  EXPECT_EQ(1, record.first_failed_rank);
  EXPECT_EQ(5, record.ranks[1].exit_code);
  EXPECT_EQ(9, record.ranks[0].exit_code);
  EXPECT_EQ(SIGKILL, record.ranks[2].signal);
  EXPECT_TRUE(record.killed);
}

// Planted bug: not joining the memory cgroup (no kill), or reading only v2's
// memory.events (no counters here).
TEST(SupervisorExit, CountsAnOutOfMemoryKill) {
  TestAttempt attempt;
  CgroupLimits limits;
  limits.memory_bytes = 64 << 20;
  const auto driver = CgroupDriver::Detect();
  const AttemptCgroup cgroup =
      PrepareAttemptCgroup(driver, "test-oom-" + std::to_string(::getpid()), limits);
  const CgroupJoin* memory = cgroup.Find("memory");
  if (memory == nullptr) GTEST_SKIP() << "no memory cgroup: " << Join(cgroup.off, "; ");
  attempt.plan.cgroups = cgroup.joins;
  attempt.Python("print('start', flush=True)\nx = bytearray(320 << 20)\nprint('never')\n");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("start\n", attempt.out());
  EXPECT_EQ(SIGKILL, record.ranks[0].signal);
  EXPECT_FALSE(record.killed);
  EXPECT_EQ(1, record.cgroup.oom_kills);
  EXPECT_GT(record.cgroup.limit_hits, 0);
  EXPECT_EQ(64 << 20, record.cgroup.memory_limit);
  EXPECT_GT(record.cgroup.memory_peak, 48 << 20);
  EXPECT_LE(record.cgroup.memory_peak, 64 << 20);
  EXPECT_EQ(cgroup.Find("cpuacct") != nullptr, record.cgroup.cpu_ns > 0);
  EXPECT_TRUE(RemoveAttemptCgroup(cgroup).ok());
  EXPECT_FALSE(Exists(memory->dir));
}

TEST(SupervisorExit, AProcessLimitStopsAForkBombWithoutTheSupervisor) {
  TestAttempt attempt;
  CgroupLimits limits;
  limits.pids = 20;
  const AttemptCgroup cgroup = PrepareAttemptCgroup(
      CgroupDriver::Detect(), "test-pids-" + std::to_string(::getpid()), limits);
  if (cgroup.Find("pids") == nullptr) GTEST_SKIP() << Join(cgroup.off, "; ");
  attempt.plan.cgroups = cgroup.joins;
  attempt.Python(R"(
import os, signal
made = 0
try:
    while True:
        if os.fork() == 0:
            signal.pause()
        made += 1
except BlockingIOError:
    print(made, flush=True)
)");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ(0, record.ranks[0].exit_code);
  EXPECT_EQ("19\n", attempt.out());
  EXPECT_TRUE(record.leftovers_killed);
  EXPECT_TRUE(RemoveAttemptCgroup(cgroup).ok());
}

// Planted bug: setup failures that end the supervisor without a record.
TEST(SupervisorExit, ARequiredMountThatFailsIsToldAsASetupError) {
  TestAttempt attempt;
  attempt.plan.mounts = {{"/no/such/source", attempt.path("target"), false, true}};
  attempt.Launch();
  EXPECT_EQ('E', attempt.ready().at(0));
  attempt.WaitForEnd();
  const ExitRecord record = attempt.record();
  EXPECT_NE(std::string::npos, record.setup_error.find("/no/such/source")) << record.setup_error;
  EXPECT_EQ("not_found", record.setup_code);
  EXPECT_EQ(-1, record.ranks[0].exit_code);
  EXPECT_FALSE(Exists(attempt.plan.ranks[0].stdout_path) && !attempt.out().empty());
}

}  // namespace
}  // namespace athanor
