#include "run/hang/stacks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Real programs in a folder of their own, ended with the test.
class Stacks : public ::testing::Test {
 protected:
  ~Stacks() override {
    for (const pid_t pid : started_) {
      ::kill(-pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  pid_t Start(const std::vector<std::string>& argv, const std::string& more = "X=1") {
    UniqueFd log(::open((dir_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    DetachedOptions options;
    options.cwd = dir_.path();
    options.environment = {"PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1",
                           "PYTHONPATH=" ATHANOR_SITE_DIR, "ATHANOR_STACKS=" + file(), more};
    const auto pid = SpawnDetached(argv, log.get(), options);
    EXPECT_TRUE(pid.has_value());
    if (!pid) return 0;
    started_.push_back(*pid);
    return *pid;
  }

  // Runs a script and waits until it says that it is up by making a file of that name.
  pid_t Python(const std::string& name, const std::string& body, const std::string& more = "X=1",
               const std::vector<std::string>& flags = {}) {
    const std::string script = "def up():\n    open('" + name + ".up', 'w').write('x')\n" + body;
    EXPECT_TRUE(ReplaceFile(dir_ / (name + ".py"), script).ok());
    std::vector<std::string> argv{"/usr/bin/python3"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    argv.push_back(name + ".py");
    const pid_t pid = Start(argv, more);
    AwaitFile(name + ".up");
    return pid;
  }

  void AwaitFile(const std::string& name) {
    ASSERT_TRUE(test::Eventually([&] { return Exists(dir_ / name); })) << *ReadFile(dir_ / "log");
  }

  RankStacks TakeOf(pid_t pid, milliseconds timeout = seconds(60)) {
    return TakeStacks({ProcessesOfRank(ListProcesses(), Rank{0}, pid, file())}, timeout)[0];
  }

  std::string file() const { return dir_ / "stacks"; }
  bool Alive(pid_t pid) const { return ::waitpid(pid, nullptr, WNOHANG) == 0; }

  TestDir dir_;
  std::vector<pid_t> started_;
};

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Stacks, ShowWhereTheMainProcessAndItsForkedWorkersStand) {
  const pid_t pid = Python("train", R"(
import os, time
def worker():
    open('worker.up', 'w').close()
    time.sleep(1000)
def main():
    if os.fork() == 0:
        worker()
    up()
    time.sleep(1000)
main()
)");
  AwaitFile("worker.up");
  const RankStacks stacks = TakeOf(pid);
  ASSERT_EQ(stacks.processes.size(), 2u);
  EXPECT_EQ(stacks.processes[0].pid, pid);
  EXPECT_EQ(stacks.processes[0].comm, "python3");
  EXPECT_TRUE(stacks.processes[0].python);
  EXPECT_TRUE(stacks.processes[1].python);
  EXPECT_TRUE(Has(stacks.processes[0].text, "in main")) << stacks.processes[0].text;
  EXPECT_FALSE(Has(stacks.processes[0].text, "in worker"));
  EXPECT_TRUE(Has(stacks.processes[1].text, "in worker")) << stacks.processes[1].text;
  EXPECT_TRUE(Has(stacks.Text(), "process " + std::to_string(pid) + " (python3):\n"));
  EXPECT_TRUE(Alive(pid));
}

TEST_F(Stacks, AreShownOfAnInterpreterStuckInCWithItsLockHeld) {
  const pid_t pid = Python("train", R"(
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
def stuck():
    up()
    ctypes.PyDLL(None).pause()
stuck()
)");
  const RankStacks stacks = TakeOf(pid);
  ASSERT_EQ(stacks.processes.size(), 1u);
  EXPECT_TRUE(Has(stacks.processes[0].text, "in stuck")) << stacks.processes[0].text;
  EXPECT_TRUE(Has(stacks.processes[0].text, "threading.py")) << "of all threads";
}

TEST_F(Stacks, AreTakenAsOftenAsAsked) {
  const pid_t pid = Python("train", "import time\nup()\ntime.sleep(1000)\n");
  for (int round = 0; round < 2; ++round) {
    const std::string text = TakeOf(pid).processes.at(0).text;
    EXPECT_TRUE(StartsWith(text, "Current thread 0x")) << text;
    EXPECT_EQ(text.find("Current thread", 1), std::string::npos) << "not that of the last time";
  }
}

TEST_F(Stacks, GoDownThroughTheShell) {
  ASSERT_TRUE(ReplaceFile(dir_ / "t.py", "import time\nopen('up','w')\ntime.sleep(1000)\n").ok());
  const pid_t pid = Start({"sh", "-c", "/usr/bin/python3 t.py; true"});
  AwaitFile("up");
  const RankStacks stacks = TakeOf(pid);
  ASSERT_EQ(stacks.processes.size(), 2u);
  EXPECT_FALSE(stacks.processes[0].python);
  EXPECT_TRUE(Has(stacks.processes[0].text, "state: ")) << stacks.processes[0].text;
  EXPECT_TRUE(stacks.processes[1].python);
}

TEST_F(Stacks, NeverSignalAProcessThatDoesNotWaitForIt) {
  const pid_t isolated = Python("isolated", "import time\nup()\ntime.sleep(1000)\n", "X=1", {"-I"});
  const pid_t off = Python("off", "import time\nup()\ntime.sleep(1000)\n", "ATHANOR_SITE=0");
  // Catches the signal for its own ends, and would tell.
  const pid_t own = Python("own", R"(
import signal
signal.signal(signal.SIGURG, lambda *_: open('hit', 'w').close())
signal.signal(signal.SIGIO, lambda *_: open('asked', 'w').close())
up()
while True: signal.pause()
)",
                           "ATHANOR_SITE=0");
  // Makes the file be there.
  const pid_t good = Python("good", "import time\nup()\ntime.sleep(1000)\n");
  for (const pid_t pid : {isolated, off, own}) {
    const RankStacks stacks = TakeOf(pid);
    ASSERT_EQ(stacks.processes.size(), 1u);
    EXPECT_FALSE(stacks.processes[0].python) << stacks.processes[0].text;
    EXPECT_TRUE(Has(stacks.processes[0].text, "state: ")) << stacks.processes[0].text;
    EXPECT_TRUE(Alive(pid));
  }
  EXPECT_TRUE(TakeOf(good).processes.at(0).python);
  // Python runs handlers in the order of the signals' numbers: had there been a SIGURG,
  // its file would be there before that of the greater SIGIO.
  ::kill(own, SIGIO);
  AwaitFile("asked");
  EXPECT_FALSE(Exists(dir_ / "hit"));
}

TEST_F(Stacks, AStoppedProcessIsNotAsked) {
  const pid_t pid = Python("train", "import time\nup()\ntime.sleep(1000)\n");
  ::kill(pid, SIGSTOP);
  ASSERT_TRUE(test::Eventually([&] {
    ProcessInfo info;
    return ReadProcess("/proc", pid, &info) && info.state == 'T';
  }));
  const RankStacks stacks = TakeOf(pid);
  ASSERT_EQ(stacks.processes.size(), 1u);
  EXPECT_FALSE(stacks.processes[0].python);
  EXPECT_TRUE(Has(stacks.processes[0].text, "the process is stopped"));
  const auto status = ReadFile("/proc/" + std::to_string(pid) + "/status");
  EXPECT_EQ(SignalSet(*status, "ShdPnd"), 0u);
}

TEST_F(Stacks, WhatALateProcessMayStillWriteIsNeverTakenForAnothers) {
  const pid_t pid = Python("train", R"(
import os, signal, time
if os.fork() == 0:
    open('worker.up', 'w').close()
    time.sleep(1000)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
up()
time.sleep(1000)
)");
  AwaitFile("worker.up");
  for (int round = 0; round < 2; ++round) {
    const RankStacks stacks = TakeOf(pid, seconds(1));
    ASSERT_EQ(stacks.processes.size(), 2u);
    EXPECT_FALSE(stacks.processes[0].python);
    EXPECT_TRUE(Has(stacks.processes[0].text, "not answer")) << stacks.processes[0].text;
    EXPECT_FALSE(stacks.processes[1].python);
    EXPECT_TRUE(Has(stacks.processes[1].text, "has not answered yet")) << stacks.processes[1].text;
  }
}

TEST_F(Stacks, OfNothingAreNothing) {
  EXPECT_TRUE(TakeStacks({}, seconds(1)).empty());
  RankProcesses gone{Rank{3}, {}, file()};
  const auto stacks = TakeStacks({gone}, seconds(1));
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].rank, Rank{3});
  EXPECT_EQ(stacks[0].Text(), "");
  const auto self = TakeStacks({{Rank{0}, {::getpid()}, file()}}, milliseconds(0));
  ASSERT_EQ(self[0].processes.size(), 1u);
  EXPECT_FALSE(self[0].processes[0].python) << "there is no stacks file";
}

TEST_F(Stacks, NameTheRankThatStandsElsewhere) {
  const std::string wait = R"(
import threading, time
def step():
    threading.Event().wait()
up()
step()
)";
  const pid_t a = Python("train", wait);
  const pid_t b = Start({"/usr/bin/python3", "train.py"}, "RANK=1");
  const pid_t c = Python("other", R"(import time
def load():
    up()
    time.sleep(1000)
load()
)");
  std::vector<RankProcesses> ranks;
  const auto all = ListProcesses();
  uint32_t rank = 0;
  for (const pid_t pid : {a, b, c}) {
    ranks.push_back(ProcessesOfRank(all, Rank{rank++}, pid, file()));
  }
  std::optional<OddRanks> odd;
  // The second one does not report when it has reached its step.
  ASSERT_TRUE(test::Eventually([&] {
    odd = OddRank(TakeStacks(ranks, seconds(60)));
    return odd && Has(odd->others_at, "in step") && Has(odd->at[0], ":6 ");
  }));
  EXPECT_EQ(odd->ranks, std::vector<Rank>{Rank{2}});
  EXPECT_TRUE(Has(odd->Text(), "rank 2 is at ")) << odd->Text();
  EXPECT_TRUE(Has(odd->Text(), "other.py:6 in load; the other 2 are at ")) << odd->Text();
  EXPECT_TRUE(Has(odd->Text(), "train.py:6 in step")) << odd->Text();
}

RankStacks At(uint32_t rank, const std::string& file, int line) {
  return {Rank{rank},
          {{10, "sh", false, "state: S\n"},
           {11, "python3", true,
            "Thread 0x00007f01 (most recent call first):\n"
            "  File \"/app/other.py\", line " +
                std::to_string(100 + rank) +
                " in pump\n\n"
                "Current thread 0x00007f02 (most recent call first):\n"
                "  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n"
                "  File \"" +
                file + "\", line " + std::to_string(line) + " in step\n"}}};
}

TEST(OddRank, ComparesTheInnermostFrameOfTheUser) {
  const auto odd = OddRank({At(0, "/app/train.py", 52), At(1, "/app/train.py", 52),
                            At(2, "/app/train.py", 40), At(3, "/app/train.py", 52)});
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->Text(),
            "rank 2 is at /app/train.py:40 in step; the other 3 are at /app/train.py:52 in step");
}

TEST(OddRank, IsNobodyWhenAllAgreeOrNoneHasAMajority) {
  EXPECT_FALSE(OddRank({}).has_value());
  EXPECT_FALSE(OddRank({At(0, "a.py", 1)}).has_value());
  EXPECT_FALSE(OddRank({At(0, "a.py", 1), At(1, "a.py", 1)}).has_value());
  EXPECT_FALSE(OddRank({At(0, "a.py", 1), At(1, "a.py", 2)}).has_value());
}

TEST(OddRank, SeesRanksThatAreGoneOrSilent) {
  const auto gone = OddRank({At(0, "a.py", 1), RankStacks{Rank{1}, {}}, At(2, "a.py", 1)});
  ASSERT_TRUE(gone.has_value());
  EXPECT_EQ(gone->Text(), "rank 1 is at (no process is left); the other 2 are at a.py:1 in step");
  const auto two = OddRank({At(0, "a.py", 1), At(1, "a.py", 1), At(2, "a.py", 1),
                            RankStacks{Rank{3}, {{1, "x", false, "state: D"}}}, At(4, "a.py", 9)});
  ASSERT_TRUE(two.has_value());
  EXPECT_EQ(two->ranks, (std::vector<Rank>{Rank{3}, Rank{4}}));
  EXPECT_EQ(two->at[0], "(no Python stack)");
}

TEST(SignalSet, ReadsTheLineOfThatName) {
  const std::string status =
      "Name:\tSigCgt: ff\nState:\tS (sleeping)\nSigBlk:\t00\n"
      "SigCgt:\t0000000000400002\nCapInh:\t1\n";
  EXPECT_EQ(SignalSet(status, "SigCgt"), 0x400002u);
  EXPECT_EQ(SignalSet(status, "SigCgt") >> (SIGURG - 1) & 1, 1u);
  EXPECT_EQ(SignalSet(status, "ShdPnd"), 0u);
  EXPECT_EQ(SignalSet("SigCgt:\txyz\n", "SigCgt"), 0u);
  EXPECT_EQ(SignalSet("", "SigCgt"), 0u);
}

TEST(RankStacks, TextIsBoundedAndEndsWithALine) {
  RankStacks stacks = At(0, "/app/train.py", 1);
  const std::string whole = stacks.Text();
  EXPECT_TRUE(Has(whole, "process 10 (sh):\n  state: S\n"));
  const std::string cut = stacks.Text(100);
  EXPECT_LE(cut.size(), 100u);
  EXPECT_TRUE(Has(cut, "\n...\n"));
}

}  // namespace
}  // namespace athanor
