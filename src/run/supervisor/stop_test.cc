#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using test::TestAttempt;

// Says "up" when it is ready for a stop, and writes a file when it gets one. No pause(): a signal
// just before it would wait for the next one.
constexpr char kTrainer[] = R"(
import os, signal, sys, time
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
    time.sleep(0.05)
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

// What a shell starts after its program was stopped would train for the whole grace. Planted bug:
// asking only the processes that exist when the stop comes.
TEST(SupervisorStop, AsksWhatAShellStartsNext) {
  const char* const commands[] = {
      "/usr/bin/python3 train.py; /usr/bin/python3 second.py",
      "bash -c '/usr/bin/python3 train.py; bash -c \"/usr/bin/python3 second.py; true\"; true'; "
      "true",
      "for i in 1 2 3 4; do /usr/bin/python3 train.py || /usr/bin/python3 second.py; done; exit 0",
      "timeout 5000 sh -c '/usr/bin/python3 train.py; env A=b /usr/bin/python3 second.py'; true",
      "/usr/bin/python3 train.py | tee copy; /usr/bin/python3 second.py | tee copy",
      // A pyenv shim: a command substitution, then exec of the program in the shell's place.
      "./shim second.py",
      "/usr/bin/python3 train.py; exec ./shim second.py",
  };
  for (const char* command : commands) {
    for (bool namespaces : {true, false}) {
      TestAttempt attempt;
      if (!namespaces) attempt.isolation = Isolation();
      attempt.WriteScript("train.py", kTrainer);
      attempt.WriteScript("second.py", kTrainer);
      attempt.WriteScript("shim",
                          "#!/usr/bin/env bash\nset -u\nprogram=\"$(echo up > up; sleep 1000; "
                          "echo x)\"\nexec /usr/bin/python3 \"$@\"\n");
      attempt.Shell(command);
      attempt.Launch();
      attempt.Await("up");
      ASSERT_TRUE(AskToStop(attempt.pidfd()).ok());
      attempt.WaitForEnd();
      ASSERT_FALSE(attempt.record().killed) << command;
      EXPECT_EQ(SIGTERM, attempt.record().stop_signal) << command;
    }
  }
}

// Planted bug: asking all of them again in each round.
TEST(SupervisorStop, AsksEachProgramOnce) {
  TestAttempt attempt;
  attempt.WriteScript("slow.py", R"(
import os, signal, sys, time
d = os.environ['DIR']
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
name = sys.argv[1]
open(d + '/' + name, 'w').write('up')
count = 0
deadline = None
while deadline is None or time.monotonic() < deadline:
    if signal.sigtimedwait([signal.SIGTERM], 0.05):
        count += 1
        deadline = deadline or time.monotonic() + 0.5
open(d + '/count', 'a').write('%s %d\n' % (name, count))
)");
  // `env` holds SIGTERM back before Python runs, so that none is lost.
  attempt.Shell(
      "env --block-signal=TERM /usr/bin/python3 slow.py first; "
      "env --block-signal=TERM /usr/bin/python3 slow.py second; exit 0");
  attempt.Launch();
  attempt.Await("first");
  ASSERT_TRUE(AskToStop(attempt.pidfd()).ok());
  attempt.WaitForEnd();
  EXPECT_EQ("first 1\nsecond 1\n", attempt.Content("count"));
  EXPECT_FALSE(attempt.record().killed);
}

// What a program starts when it is asked (an upload, say) is its own business, and so is what a
// script copies away after its program, or runs in its trap. Planted bugs: asking every process
// that appears; without the spared shells; without the savers.
TEST(SupervisorStop, LeavesAloneWhatTidiesUp) {
  const char* const commands[] = {
      "/usr/bin/python3 uploads.py; exit 0",
      "trap './tidy; exit 0' TERM; /usr/bin/python3 train.py; wait",
      "/usr/bin/python3 train.py; cp slow_pipe tidied; exit 0",
  };
  for (const char* command : commands) {
    TestAttempt attempt;
    attempt.WriteScript("train.py", kTrainer);
    attempt.WriteScript("uploads.py", R"(
import os, signal, subprocess, sys, time
d = os.environ['DIR']
def stop(number, frame):
    subprocess.run(['sh', '-c', './tidy; true'])
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
open(d + '/up', 'w').write('up')
while True:
    time.sleep(0.05)
)");
    // Long enough for many looks; a SIGTERM would end the sleep and the script before its word.
    attempt.WriteScript("tidy", "#!/bin/sh\nset -e\nsleep 1.5\necho done > tidied\n");
    ASSERT_EQ(0, ::mkfifo(attempt.path("slow_pipe").c_str(), 0600));
    attempt.Shell(command);
    attempt.Launch();
    attempt.Await("up");
    ASSERT_TRUE(AskToStop(attempt.pidfd()).ok());
    if (std::string_view(command).find("slow_pipe") != std::string_view::npos) {
      int pipe = -1;  // can be opened once cp reads it
      ASSERT_TRUE(test::Eventually([&] {
        pipe = ::open(attempt.path("slow_pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        return pipe >= 0;
      }));
      ::usleep(1'500'000);
      ::signal(SIGPIPE, SIG_IGN);
      EXPECT_EQ(5, ::write(pipe, "done\n", 5)) << "cp was stopped";
      ::close(pipe);
    }
    attempt.WaitForEnd();
    EXPECT_EQ("done\n", attempt.Content("tidied")) << command;
    EXPECT_EQ(0, attempt.record().ranks[0].exit_code) << command;
    EXPECT_FALSE(attempt.record().killed) << command;
  }
}

// Planted bug: asking the programs of a loop for ever, but never the script.
TEST(SupervisorStop, EndsALoopThatStartsItsProgramAgain) {
  TestAttempt attempt;
  attempt.WriteScript("train.py", kTrainer);
  attempt.Shell("while :; do /usr/bin/python3 train.py; sleep 1000; done");
  attempt.Launch();
  attempt.Await("up");
  ASSERT_TRUE(AskToStop(attempt.pidfd()).ok());
  attempt.WaitForEnd();
  EXPECT_EQ(SIGTERM, attempt.record().ranks[0].signal);
  EXPECT_FALSE(attempt.record().killed);
}

// Planted bug: signalling the process group or every process of the namespace.
TEST(SupervisorStop, LeavesDataLoaderChildrenToTheirProgram) {
  TestAttempt attempt;
  // The workers hold SIGTERM back; asked after the program got its own, each
  // says whether one is pending.
  attempt.Python(R"(
import os, signal, sys, time
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

// Its agent was killed, then the folder removed: nothing is left to end it. Planted bug: without
// EndWithFolder it runs for ever.
TEST(SupervisorStop, EndsWhenTheFolderOfItsRecordIsGone) {
  for (bool namespaces : {true, false}) {
    TestAttempt attempt;
    if (!namespaces) attempt.isolation = Isolation();
    const std::string folder = attempt.path("records");
    ASSERT_TRUE(MakeDirs(folder).ok());
    attempt.plan.exit_path = folder + "/exit";
    attempt.Shell("trap '' TERM; echo up > up; while :; do sleep 0.01; done");
    attempt.Launch();
    attempt.Await("up");
    const auto rank = static_cast<pid_t>(attempt.started().ranks[0].outer_pid);
    ASSERT_EQ(0, ::kill(rank, 0));
    ASSERT_TRUE(RemoveTree(folder).ok());
    EXPECT_TRUE(test::Eventually([&] { return ::kill(rank, 0) != 0; })) << "the script";
    pollfd over{attempt.pidfd(), POLLIN, 0};
    EXPECT_EQ(1, ::poll(&over, 1, 120'000)) << "the supervisor";
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
