#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/io/files.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using test::TestAttempt;

// 50 MB that no filter, line split or text mode survives unnoticed.
constexpr char kWriter[] = R"(
import os, sys
block = bytes((i * 7 + i // 251 + int(os.environ['RANK'])) % 256 for i in range(1 << 20))
for i in range(50):
    sys.stdout.buffer.write(block)
)";

std::string ExpectedBlock(int rank) {
  std::string block(1 << 20, '\0');
  for (size_t i = 0; i < block.size(); ++i) {
    block[i] = static_cast<char>((i * 7 + i / 251 + static_cast<size_t>(rank)) % 256);
  }
  return block;
}

TEST(SupervisorOutput, KeepsBothStreamsApart) {
  TestAttempt attempt;
  attempt.Shell("echo hello; echo oops >&2");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("S", attempt.ready());
  EXPECT_EQ("hello\n", attempt.out());
  EXPECT_EQ("oops\n", attempt.err());
  EXPECT_EQ(0, record.ranks[0].exit_code);
  EXPECT_EQ(6, record.ranks[0].out.written);
  EXPECT_EQ(5, record.ranks[0].err.written);
  struct stat info {};
  ASSERT_EQ(0, ::stat(attempt.plan.ranks[0].stdout_path.c_str(), &info));
  EXPECT_EQ(0600u, info.st_mode & 0777);
}

// Planted bug: opening the log with O_TRUNC, or starting at offset 0.
TEST(SupervisorOutput, AppendsToWhatAnEarlierPhaseWrote) {
  TestAttempt attempt;
  attempt.WriteScript("out0", "set-up\n");
  attempt.Shell("echo run");
  attempt.Run();
  EXPECT_EQ("set-up\nrun\n", attempt.out());
}

TEST(SupervisorOutput, MergesStreamsThatShareAFileInOrder) {
  TestAttempt attempt;
  attempt.plan.ranks[0].stderr_path = attempt.plan.ranks[0].stdout_path;
  attempt.Shell("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
  attempt.Run();
  EXPECT_EQ("o1\ne1\no2\ne2\no3\ne3\n", attempt.out());
}

// Planted bug: counting a partial splice as a whole one, or draining only once
// after the rank's end.
TEST(SupervisorOutput, IsByteExactFor50MegabytesFromTwoRanks) {
  TestAttempt attempt;
  attempt.AddRank();
  attempt.Python(kWriter, 0);
  attempt.Python(kWriter, 1);
  const ExitRecord record = attempt.Run();
  for (int rank : {0, 1}) {
    const std::string block = ExpectedBlock(rank);
    const std::string out = attempt.out(static_cast<size_t>(rank));
    ASSERT_EQ(50 * block.size(), out.size());
    for (size_t i = 0; i < 50; ++i) {
      ASSERT_EQ(0, out.compare(i * block.size(), block.size(), block)) << "block " << i;
    }
    EXPECT_EQ(0, record.ranks[static_cast<size_t>(rank)].out.dropped);
  }
}

// Planted bug: leaving the pipe unread after the cap; the script then hangs.
TEST(SupervisorOutput, StopsKeepingAtTheCapAndLetsTheScriptRunOn) {
  TestAttempt attempt;
  attempt.plan.log_cap_bytes = 100'000;
  attempt.Python(kWriter);
  const ExitRecord record = attempt.Run();
  EXPECT_EQ(0, record.ranks[0].exit_code);
  EXPECT_TRUE(record.ranks[0].out.capped);
  EXPECT_EQ((50 << 20) - 100'000, record.ranks[0].out.dropped);
  const std::string out = attempt.out();
  EXPECT_EQ(ExpectedBlock(0).substr(0, 100'000), out.substr(0, 100'000));
  EXPECT_EQ("\n[athanor] output cap of 100000 bytes reached; what follows is not kept\n",
            out.substr(100'000));
  EXPECT_EQ(static_cast<int64_t>(out.size()), record.ranks[0].out.written);
}

TEST(SupervisorOutput, AnOutputOfExactlyTheCapIsNotCapped) {
  TestAttempt attempt;
  attempt.plan.log_cap_bytes = 6;
  attempt.Shell("echo hello");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("hello\n", attempt.out());
  EXPECT_FALSE(record.ranks[0].out.capped);
}

// A log of at most 1 MiB, and the exit record, on a disk of their own. Runs a script that
// prints 50 MB until it waits.
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::IsRoot()) GTEST_SKIP() << "needs root to mount a small tmpfs";
    small_ = attempt_.path("small");
    ASSERT_EQ(0, ::mkdir(small_.c_str(), 0700));
    ASSERT_EQ(0, ::mount("tmpfs", small_.c_str(), "tmpfs", 0, "size=1m"));
    attempt_.plan.ranks[0].stdout_path = small_ + "/out";
    attempt_.plan.exit_path = small_ + "/exit";
    attempt_.Python(std::string(kWriter) +
                    "sys.stdout.flush()\nopen(os.environ['DIR'] + '/done', 'w').write('yes')\n");
    attempt_.Launch();
    ASSERT_TRUE(test::Eventually([&] { return WaitsForRoom(attempt_.pid()); }));
    EXPECT_EQ("", attempt_.Content("done"));
  }
  void TearDown() override {
    if (!small_.empty()) (void)::umount2(small_.c_str(), MNT_DETACH);
  }

  // What was dropped is counted; what was kept is the begin of what was printed.
  void CheckCut(const ExitRecord& record) {
    const std::string out = attempt_.out();
    const StreamEnd& end = record.ranks[0].out;
    EXPECT_TRUE(record.disk_full);
    EXPECT_EQ(ENOSPC, end.write_errno);
    EXPECT_EQ(static_cast<int64_t>(out.size()), end.written);
    EXPECT_GT(end.dropped, 0);  // what the pipe held
    EXPECT_EQ(ExpectedBlock(0).substr(0, out.size()), out);
    EXPECT_EQ("", attempt_.Content("done"));
  }

  TestAttempt attempt_;
  std::string small_;
};

// Planted bug: dropping what does not fit, as beyond the cap.
TEST_F(FullDisk, HoldsTheScriptAndLosesNothingOnceThereIsRoom) {
  ASSERT_EQ(0, ::mount("tmpfs", small_.c_str(), "tmpfs", MS_REMOUNT, "size=80m"));
  attempt_.WaitForEnd();
  const ExitRecord record = attempt_.record();
  EXPECT_EQ("yes", attempt_.Content("done"));
  EXPECT_EQ(0, record.ranks[0].exit_code);
  EXPECT_EQ(0, record.ranks[0].out.dropped);
  EXPECT_FALSE(record.disk_full);
  const std::string block = ExpectedBlock(0);
  const std::string out = attempt_.out();
  ASSERT_EQ(50 * block.size(), out.size());
  for (size_t i = 0; i < 50; ++i) {
    ASSERT_EQ(0, out.compare(i * block.size(), block.size(), block)) << "block " << i;
  }
}

// Planted bug: waiting for room although a stop was asked for, or writing the exit record
// only into space taken at the end (there is none).
TEST_F(FullDisk, AStopReachesAScriptThatWaits) {
  ASSERT_TRUE(AskToStop(attempt_.pidfd()).ok());
  attempt_.WaitForEnd();
  const ExitRecord record = attempt_.record();
  EXPECT_EQ(SIGTERM, record.ranks[0].signal);
  EXPECT_FALSE(record.killed);
  CheckCut(record);
}

TEST_F(FullDisk, AKillReachesAScriptThatWaits) {
  ASSERT_TRUE(KillAllNow(attempt_.pidfd()).ok());
  attempt_.WaitForEnd();
  const ExitRecord record = attempt_.record();
  EXPECT_EQ(SIGKILL, record.ranks[0].signal);
  CheckCut(record);
}

// Planted bug: leaving the loop with what a script left in the pipe when it ended.
TEST(SupervisorOutput, WhatAScriptPrintedLastWaitsForRoomAfterItsEnd) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to mount a small tmpfs";
  TestAttempt attempt;
  const std::string small = attempt.path("small");
  ASSERT_EQ(0, ::mkdir(small.c_str(), 0700));
  ASSERT_EQ(0, ::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=256k"));
  attempt.plan.ranks[0].stdout_path = small + "/out";
  attempt.Python("import os\nos.write(1, b'x' * 500000)\n");
  attempt.Launch();
  ASSERT_TRUE(test::Eventually([&] { return WaitsForRoom(attempt.pid()); }));
  ASSERT_EQ(0, ::mount("tmpfs", small.c_str(), "tmpfs", MS_REMOUNT, "size=8m"));
  attempt.WaitForEnd();
  const std::string out = attempt.out();
  EXPECT_EQ(0, ::umount2(small.c_str(), MNT_DETACH));
  EXPECT_EQ(std::string(500'000, 'x'), out);
  EXPECT_EQ(0, attempt.record().ranks[0].exit_code);
  EXPECT_EQ(0, attempt.record().ranks[0].out.dropped);
}

// Planted bug: waiting for room that a script which filled the disk itself will never give
// back, or giving up without the reserve: what it said last is why it failed.
TEST(SupervisorOutput, AScriptThatFilledTheDiskItselfFailsWithItsLastWordsKept) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to mount a small tmpfs";
  TestAttempt attempt;
  const std::string small = attempt.path("small");
  ASSERT_EQ(0, ::mkdir(small.c_str(), 0700));
  ASSERT_EQ(0, ::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m"));
  attempt.plan.ranks[0].stdout_path = small + "/out";
  attempt.plan.ranks[0].stderr_path = small + "/err";
  attempt.plan.exit_path = small + "/exit";
  attempt.Python(
      "import os\nf = open(os.environ['DIR'] + '/small/big', 'wb', buffering=0)\n"
      "while True: f.write(b'x' * 4096)\n");
  const ExitRecord record = attempt.Run();
  const std::string err = attempt.err();
  EXPECT_EQ(0, ::umount2(small.c_str(), MNT_DETACH));
  EXPECT_EQ(1, record.ranks[0].exit_code);
  EXPECT_NE(std::string::npos, err.find("No space left on device")) << err;
  EXPECT_EQ(0, record.ranks[0].err.dropped);
}

// Planted bug: ending the attempt at the first end of file of a stream.
TEST(SupervisorOutput, AScriptMayCloseItsOutput) {
  TestAttempt attempt;
  attempt.Python(
      "import os\nos.close(1)\nos.close(2)\nopen('late', 'w').write('here')\nos._exit(7)\n");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("here", attempt.Content("late"));
  EXPECT_EQ(7, record.ranks[0].exit_code);
}

// Planted bug: giving the script the log file itself as its stdout.
TEST(SupervisorOutput, ReopeningStdoutWithTruncationLosesNothing) {
  TestAttempt attempt;
  attempt.Shell("echo one; echo two > /dev/stdout; echo three >> /dev/stdout; echo four");
  attempt.Run();
  EXPECT_EQ("one\ntwo\nthree\nfour\n", attempt.out());
}

// Planted bug: a pipe that belongs to root; another user's open(2) of it fails.
TEST(SupervisorOutput, ReopeningStdoutWorksForAnotherUser) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to run as another user";
  TestAttempt attempt;
  attempt.plan.uid = 65534;
  attempt.plan.gid = 65534;
  attempt.plan.ranks[0].cwd = "/";
  attempt.Shell("echo $(id -u) > /dev/stdout; echo err > /dev/stderr");
  attempt.Run();
  EXPECT_EQ("65534\n", attempt.out());
  EXPECT_EQ("err\n", attempt.err());
}

// Planted bug: waiting for end of file, which a daemon holds off for ever.
TEST(SupervisorOutput, ADaemonThatKeepsStdoutOpenDoesNotHang) {
  TestAttempt attempt;
  attempt.Shell("echo before; setsid sh -c 'sleep 1000' & exit 3");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ(3, record.ranks[0].exit_code);
  EXPECT_EQ("before\n", attempt.out());
  EXPECT_TRUE(record.leftovers_killed);
}

// Planted bug: killing what is left as soon as the last rank ends.
TEST(SupervisorOutput, AChildThatFinishesSoonAfterIsHeard) {
  TestAttempt attempt;
  attempt.plan.linger_ms = 60'000;
  ASSERT_EQ(0, ::mkfifo(attempt.path("gate").c_str(), 0600));
  attempt.Shell("(read x < gate; echo late; exec >&-) & echo early");
  attempt.Launch();
  ASSERT_TRUE(test::Eventually([&] { return attempt.out() == "early\n"; }));
  const UniqueFd gate(::open(attempt.path("gate").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_EQ(1, ::write(gate.get(), "\n", 1));
  attempt.WaitForEnd();
  EXPECT_EQ("early\nlate\n", attempt.out());
  EXPECT_FALSE(attempt.record().leftovers_killed);
}

}  // namespace
}  // namespace athanor
