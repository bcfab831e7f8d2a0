#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/text.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using test::TestAttempt;

// Says "up" when it is ready for a stop, and writes a file when it gets one.
constexpr char kTrainer[] = R"(
import os, signal, sys
d = os.environ['DIR']
def stop(number, frame):
    with open(d + '/got', 'a') as f:
        f.write('TERM\n')
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
with open(d + '/up.tmp', 'w') as f:
    f.write('up')
os.rename(d + '/up.tmp', d + '/up')
while True:
    signal.pause()
)";

void StopAndCheck(TestAttempt& attempt, const char* how) {
  attempt.Launch();
  attempt.Await("up");
  ASSERT_TRUE(AskToStop(attempt.pidfd()).ok());
  attempt.WaitForEnd();
  const ExitRecord record = attempt.record();
  EXPECT_EQ("TERM\n", attempt.Content("got")) << how;
  EXPECT_EQ(0, record.ranks[0].exit_code) << how;
  EXPECT_EQ(SIGTERM, record.stop_signal);
  EXPECT_GE(record.stop_to_end_ms, 0);
  EXPECT_FALSE(record.killed) << how;
}

TEST(SupervisorStop, ReachesAPlainProgram) {
  TestAttempt attempt;
  attempt.Python(kTrainer);
  StopAndCheck(attempt, "python3");
}

// Planted bug: signalling the rank's first process. The shell dies of it, the
// program never hears of the stop and is killed.
TEST(SupervisorStop, DescendsThroughWrappersToTheProgram) {
  const char* const commands[] = {
      "/usr/bin/python3 train.py; true",
      "timeout 100 /usr/bin/python3 train.py",
      "sh -c 'bash -c \"/usr/bin/python3 train.py; true\"; true'",
      "env A=b nice -n 1 timeout 100 nohup sh -c '/usr/bin/python3 train.py; exit $?'",
      "/usr/bin/python3 train.py | tee copy",
      "./run.sh; true",
  };
  for (const char* command : commands) {
    TestAttempt attempt;
    attempt.WriteScript("train.py", kTrainer);
    attempt.WriteScript("run.sh", "#!/bin/bash\n/usr/bin/python3 train.py\nexit $?\n");
    attempt.Shell(command);
    StopAndCheck(attempt, command);
  }
}

TEST(SupervisorStop, AShellThatTrapsTheSignalHearsItToo) {
  TestAttempt attempt;
  attempt.WriteScript("train.py", kTrainer);
  attempt.plan.ranks[0].argv = {
      "bash", "-c", "trap 'echo trapped > trap' TERM; /usr/bin/python3 train.py; exit 0"};
  StopAndCheck(attempt, "trap");
  EXPECT_EQ("trapped\n", attempt.Content("trap"));
}

// Planted bug: signalling the process group or every process of the namespace.
TEST(SupervisorStop, LeavesDataLoaderChildrenToTheirProgram) {
  TestAttempt attempt;
  // The workers hold SIGTERM back; asked after the program got its own, each
  // says whether one is pending.
  attempt.Python(R"(
import os, signal, sys
d = os.environ['DIR']
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
workers = []
for i in range(3):
    ask_r, ask_w = os.pipe()
    say_r, say_w = os.pipe()
    if os.fork() == 0:
        os.read(ask_r, 1)
        told = signal.SIGTERM in signal.sigpending()
        os.write(say_w, b'told' if told else b'left')
        os._exit(0)
    workers.append((ask_w, say_r))
open(d + '/up', 'w').write('up')
signal.sigwait([signal.SIGTERM])
for ask_w, say_r in workers:
    os.write(ask_w, b'?')
    open(d + '/workers', 'ab').write(os.read(say_r, 4) + b' ')
    os.wait()
open(d + '/got', 'w').write('TERM\n')
)");
  StopAndCheck(attempt, "data loader");
  EXPECT_EQ("left left left ", attempt.Content("workers"));
}

// Planted bug: leaving the end of the grace time to the agent, which may be dead.
TEST(SupervisorStop, KillsWhatIgnoresTheSignalAfterTheGrace) {
  for (bool namespaces : {true, false}) {
    TestAttempt attempt;
    if (!namespaces) attempt.isolation = Isolation();
    attempt.plan.stop_grace_ms = 300;
    attempt.Shell("trap '' TERM; echo up > up; while :; do sleep 0.01; done");
    attempt.Launch();
    attempt.Await("up");
    ASSERT_TRUE(AskToStop(attempt.pidfd()).ok());
    attempt.WaitForEnd();
    const ExitRecord record = attempt.record();
    EXPECT_EQ(SIGKILL, record.ranks[0].signal);
    EXPECT_TRUE(record.killed);
    EXPECT_GE(record.stop_to_end_ms, 300);
  }
}

// Planted bug: putting the deadline off with every further request.
TEST(SupervisorStop, AskingAgainDoesNotPutTheEndOff) {
  TestAttempt attempt;
  attempt.plan.stop_grace_ms = 500;
  attempt.Shell("trap '' TERM; echo up > up; while :; do sleep 0.01; done");
  attempt.Launch();
  attempt.Await("up");
  ASSERT_TRUE(test::Eventually([&] {
    EXPECT_TRUE(AskToStop(attempt.pidfd()).ok());
    return Exists(attempt.plan.exit_path);
  }));
  attempt.WaitForEnd();
  EXPECT_TRUE(attempt.record().killed);
}

TEST(SupervisorStop, KillAllNowStillLeavesARecord) {
  TestAttempt attempt;
  attempt.AddRank();
  attempt.Shell("trap '' TERM; echo up > up; while :; do sleep 0.01; done");
  attempt.Shell("exec sleep 1000", 1);
  attempt.Launch();
  attempt.Await("up");
  ASSERT_TRUE(KillAllNow(attempt.pidfd()).ok());
  attempt.WaitForEnd();
  const ExitRecord record = attempt.record();
  EXPECT_EQ(SIGKILL, record.ranks[0].signal);
  EXPECT_EQ(SIGKILL, record.ranks[1].signal);
  EXPECT_EQ(SIGUSR2, record.stop_signal);
  EXPECT_TRUE(record.killed);
}

// Planted bug: a stop sent before the supervisor reads signals is lost: an
// init without a handler ignores it.
TEST(SupervisorStop, AStopSentAtOnceIsNotLost) {
  for (int round = 0; round < 20; ++round) {
    TestAttempt attempt;
    attempt.Shell("exec sleep 1000");
    attempt.WritePlan();
    auto launched =
        LaunchSupervisor(ATHANOR_SUPERVISOR_PATH, attempt.path("plan"), attempt.isolation);
    ASSERT_TRUE(launched.has_value());
    ASSERT_TRUE(AskToStop(launched->pidfd.get()).ok());
    ASSERT_EQ(launched->pid, ::waitpid(launched->pid, nullptr, 0));
    EXPECT_EQ(SIGTERM, attempt.record().ranks[0].signal);
    EXPECT_EQ(SIGTERM, attempt.record().stop_signal);
  }
}

// Planted bug: PR_SET_PDEATHSIG, or the agent's pipe as the log's way: the
// script ends with its launcher.
TEST(SupervisorStop, OutlivesItsLauncherAndCanBeFoundAgain) {
  for (bool namespaces : {true, false}) {
    TestAttempt attempt;
    if (!namespaces) attempt.isolation = Isolation();
    attempt.WriteScript("train.py", std::string("print('first', flush=True)\n") + kTrainer);
    attempt.plan.ranks[0].argv = {"/usr/bin/python3", "train.py"};
    const pid_t launcher = ::fork();
    if (launcher == 0) {
      attempt.WritePlan();
      const auto launched =
          LaunchSupervisor(ATHANOR_SUPERVISOR_PATH, attempt.path("plan"), attempt.isolation);
      while (launched) ::pause();
      ::_exit(1);
    }
    attempt.Await("up");
    ASSERT_EQ(0, ::kill(launcher, SIGKILL));
    ASSERT_EQ(launcher, ::waitpid(launcher, nullptr, 0));
    const auto found = FindSupervisor(attempt.plan.status_path);
    ASSERT_TRUE(found.has_value()) << found.error().what;
    EXPECT_EQ("first\n", attempt.out());
    EXPECT_EQ(0, ::kill(static_cast<pid_t>(attempt.started().ranks[0].outer_pid), 0));
    ASSERT_TRUE(AskToStop(found->pidfd.get()).ok());
    ASSERT_TRUE(test::Eventually([&] { return Exists(attempt.plan.exit_path); }));
    const ExitRecord record = attempt.record();
    EXPECT_EQ(0, record.ranks[0].exit_code);
    EXPECT_EQ(6, record.ranks[0].out.written);
    EXPECT_EQ("TERM\n", attempt.Content("got"));
    ASSERT_TRUE(
        test::Eventually([&] { return !FindSupervisor(attempt.plan.status_path).has_value(); }));
    EXPECT_EQ(ErrorCode::kNotFound, FindSupervisor(attempt.plan.status_path).error().code);
  }
}

}  // namespace
}  // namespace athanor
