#include "run/supervisor/stop_round.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

ProcessInfo Process(int pid, int ppid, std::string comm, uint64_t start = 1) {
  ProcessInfo info;
  info.pid = pid;
  info.ppid = ppid;
  info.comm = std::move(comm);
  info.state = 'S';
  info.start_ticks = start;
  return info;
}

class StopRoundTest : public ::testing::Test {
 protected:
  std::vector<int> Look(const std::vector<ProcessInfo>& all, int64_t now) {
    return round_.Next(
        all, 10, [&](int pid) { return traits_[pid]; }, now);
  }
  std::map<int, ProcessTraits> traits_;
  StopRound round_;
};

using Pids = std::vector<int>;

TEST_F(StopRoundTest, AsksEachProgramOnceAndANewOneWhenItAppears) {
  EXPECT_EQ(Pids{11}, Look({Process(10, 1, "sh"), Process(11, 10, "python3")}, 0));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh"), Process(11, 10, "python3")}, 50));
  EXPECT_EQ(Pids{12}, Look({Process(10, 1, "sh"), Process(12, 10, "python3")}, 100));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh"), Process(12, 10, "python3")}, 150));
}

// Planted bug: knowing processes by their number alone.
TEST_F(StopRoundTest, KnowsANumberThatIsUsedAgain) {
  EXPECT_EQ(Pids{11}, Look({Process(10, 1, "sh"), Process(11, 10, "python3", 5)}, 0));
  EXPECT_EQ(Pids{11}, Look({Process(10, 1, "sh"), Process(11, 10, "python3", 9)}, 50));
}

TEST_F(StopRoundTest, ANewRequestAsksEverybodyAgain) {
  const std::vector<ProcessInfo> all{Process(10, 1, "sh"), Process(11, 10, "python3")};
  EXPECT_EQ(Pids{11}, Look(all, 0));
  round_.Again();
  EXPECT_EQ(Pids{11}, Look(all, 50));
  EXPECT_EQ(Pids{}, Look(all, 100));
}

// Planted bug: a shell that was asked stays asked when it becomes its program.
TEST_F(StopRoundTest, AShellThatBecomesAProgramIsAProgram) {
  traits_[10] = {"bash", true};
  EXPECT_EQ((Pids{11, 10}), Look({Process(10, 1, "bash"), Process(11, 10, "python3")}, 0));
  traits_[10] = {"python3.11", false};
  EXPECT_EQ(Pids{10}, Look({Process(10, 1, "python3")}, 50));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "python3")}, 100));
  // A program that becomes another one was asked, and knows what it does.
  traits_[10] = {"aws", false};
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "aws")}, 150));
}

TEST_F(StopRoundTest, ATrapThatWasAskedRunsWhatItWants) {
  traits_[10] = {"bash", true};
  EXPECT_EQ((Pids{11, 10}), Look({Process(10, 1, "bash"), Process(11, 10, "python3")}, 0));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "bash"), Process(12, 10, "python3")}, 50));
}

// Planted bug: asking the shell between two programs: its end would be a matter of luck.
TEST_F(StopRoundTest, AShellBetweenTwoProgramsIsLeftAloneForAMoment) {
  EXPECT_EQ(Pids{11}, Look({Process(10, 1, "sh"), Process(11, 10, "python3")}, 0));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh")}, 50));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh")}, 900));
  EXPECT_EQ(Pids{12}, Look({Process(10, 1, "sh"), Process(12, 10, "python3")}, 1'000));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh")}, 1'100)) << "counted from here";
  EXPECT_EQ(Pids{10}, Look({Process(10, 1, "sh")}, 2'100));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh")}, 2'200));
}

// Planted bug: a filter is a program once its own has ended: the last of the log is lost.
TEST_F(StopRoundTest, AFilterMayWriteDownTheLastOfItsInput) {
  EXPECT_EQ(Pids{11},
            Look({Process(10, 1, "sh"), Process(11, 10, "python3"), Process(12, 10, "tee")}, 0));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh"), Process(12, 10, "tee")}, 50));
  EXPECT_EQ(Pids{12}, Look({Process(10, 1, "sh"), Process(12, 10, "tee")}, 1'100));
}

TEST_F(StopRoundTest, WhatCopiesFilesIsAskedOnlyWhenTheStopFindsIt) {
  EXPECT_EQ(Pids{11}, Look({Process(10, 1, "sh"), Process(11, 10, "cp")}, 0));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh"), Process(12, 10, "rsync")}, 50));
  EXPECT_EQ(Pids{}, Look({Process(10, 1, "sh"), Process(12, 10, "rsync")}, 60'000));
}

TEST_F(StopRoundTest, ALoopIsAskedItself) {
  EXPECT_EQ(Pids{11}, Look({Process(10, 1, "sh"), Process(11, 10, "python3")}, 0));
  for (int i = 1; i <= 8; ++i) {
    EXPECT_EQ(Pids{11 + i}, Look({Process(10, 1, "sh"), Process(11 + i, 10, "python3")}, i * 50));
  }
  EXPECT_EQ((Pids{20, 10}), Look({Process(10, 1, "sh"), Process(20, 10, "python3")}, 500));
}

}  // namespace
}  // namespace athanor
