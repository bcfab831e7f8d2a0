#include "run/supervisor/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/io/files.h"

namespace athanor {
namespace {

ProcessInfo Process(int pid, int ppid, std::string comm, char state = 'S') {
  ProcessInfo info;
  info.pid = pid;
  info.ppid = ppid;
  info.comm = std::move(comm);
  info.state = state;
  return info;
}

std::vector<int> Targets(const std::vector<ProcessInfo>& all,
                         std::map<int, ProcessTraits> traits = {}) {
  std::vector<int> pids;
  for (const auto& target : StopTargets(all, 10, [&](int pid) { return traits[pid]; })) {
    pids.push_back(target.pid);
  }
  return pids;
}

TEST(ProcessTree, ReadsAStatLineWhoseNameHasParentheses) {
  ProcessInfo info;
  ASSERT_TRUE(
      ParseProcStat("42 (a) b (c)) S 7 42 42 0 -1 4194304 100 0 0 0 11 22 0 0 20 0 1 0 "
                    "987654 1000000 55 18446744073709551615 1 1 0 0 0",
                    &info));
  EXPECT_EQ(42, info.pid);
  EXPECT_EQ("a) b (c)", info.comm);
  EXPECT_EQ('S', info.state);
  EXPECT_FALSE(info.exiting);
  EXPECT_EQ(7, info.ppid);
  EXPECT_EQ(33u, info.cpu_ticks);
  EXPECT_EQ(987654u, info.start_ticks);
  EXPECT_EQ(55u, info.rss_pages);
  EXPECT_FALSE(ParseProcStat("", &info));
  EXPECT_FALSE(ParseProcStat("42 (x", &info));
  EXPECT_FALSE(ParseProcStat("42 (x) S 1 2", &info));
}

TEST(ProcessTree, FindsThisProcess) {
  const auto all = ListProcesses();
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& p) {
    return p.pid == ::getpid() && p.ppid == ::getppid();
  }));
}

// Planted bug that turns it red: only a zombie counts as dead. The kernel closes a dying process's
// files before it makes it one.
TEST(ProcessTree, WhoseFilesAreGoneIsNotAlive) {
  for (int round = 0; round < 20; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
      if (::fork() == 0) {
        rlimit most{};
        ::getrlimit(RLIMIT_NOFILE, &most);
        most.rlim_cur = most.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &most);
        for (int i = 0; i < 100'000; ++i) {  // the more, the longer it takes to die
          if (::dup(ready[0]) < 0) break;
        }
        const pid_t own = ::getpid();
        (void)!::write(ready[1], &own, sizeof own);
      }
      for (;;) ::pause();
    }
    pid_t child = 0;
    ASSERT_EQ(::read(ready[0], &child, sizeof child), ssize_t{sizeof child});
    EXPECT_TRUE(ChildrenLive(parent));
    EXPECT_FALSE(ChildrenLive(child)) << "it has none";
    ::kill(child, SIGKILL);
    const std::string fd_dir = "/proc/" + std::to_string(child) + "/fd";
    const auto open_files = [&] {
      const auto names = ListDir(fd_dir);
      return names ? names->size() : 0;
    };
    while (open_files() > 0) {
    }
    EXPECT_FALSE(ChildrenLive(parent));
    ::kill(parent, SIGKILL);
    ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
    ::close(ready[0]);
    ::close(ready[1]);
  }
}

TEST(ProcessTree, DescendantsSkipStrangersAndSurviveACycle) {
  const std::vector<ProcessInfo> all = {Process(2, 1, "a"), Process(3, 2, "b"), Process(4, 9, "c"),
                                        Process(9, 4, "d"), Process(5, 3, "e")};
  const auto found = DescendantsOf(all, 2);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(3, found[0].pid);
  EXPECT_EQ(5, found[1].pid);
  EXPECT_EQ(1u, DescendantsOf(all, 4).size());
}

TEST(StopTargets, APlainProgramIsItsOwnTarget) {
  EXPECT_EQ((std::vector{10}), Targets({Process(10, 1, "python3"), Process(11, 10, "python3")}));
}

TEST(StopTargets, DescendsThroughShellsAndStopsAtTheFirstProgram) {
  EXPECT_EQ((std::vector{12}),
            Targets({Process(10, 1, "sh"), Process(11, 10, "timeout"), Process(12, 11, "python3"),
                     Process(13, 12, "python3"), Process(14, 12, "sh")}));
}

TEST(StopTargets, AShellWithNothingToWaitForIsTheTarget) {
  EXPECT_EQ((std::vector{10}), Targets({Process(10, 1, "bash"), Process(11, 10, "x", 'Z')}));
}

TEST(StopTargets, PassesOverFiltersOfAPipeline) {
  EXPECT_EQ((std::vector{11}),
            Targets({Process(10, 1, "sh"), Process(11, 10, "python3"), Process(12, 10, "tee")}));
  EXPECT_EQ((std::vector{12}), Targets({Process(10, 1, "sh"), Process(12, 10, "cat")}));
}

TEST(StopTargets, EveryProgramOfAShellIsATarget) {
  EXPECT_EQ((std::vector{11, 12}), Targets({Process(10, 1, "sh"), Process(11, 10, "python3"),
                                            Process(12, 10, "python3")}));
}

TEST(StopTargets, KnowsAShellScriptByWhatRunsIt) {
  EXPECT_EQ((std::vector{11}), Targets({Process(10, 1, "train.sh"), Process(11, 10, "python3")},
                                       {{10, {"bash", false}}}));
  EXPECT_EQ((std::vector{10}), Targets({Process(10, 1, "sh"), Process(11, 10, "python3")},
                                       {{10, {"torchrun", false}}}));
}

TEST(StopTargets, AShellThatCatchesItComesAfterItsProgramButTimeoutDoesNot) {
  const std::vector<ProcessInfo> all = {Process(10, 1, "bash"), Process(11, 10, "timeout"),
                                        Process(12, 11, "python3")};
  EXPECT_EQ((std::vector{12, 10}), Targets(all, {{10, {"bash", true}}, {11, {"timeout", true}}}));
}

}  // namespace
}  // namespace athanor
