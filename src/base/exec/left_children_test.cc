#include "base/exec/left_children.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/exec/process.h"

namespace athanor {
namespace {

pid_t Start(LeftChildren& children, const std::vector<std::string>& argv) {
  const auto pid = SpawnDetached(argv, STDERR_FILENO);
  EXPECT_TRUE(pid) << pid.error().what;
  children.Add(*pid);
  return *pid;
}

// Without a trace in the process table: a zombie still takes signals.
void AwaitGone(pid_t pid) {
  while (::kill(pid, 0) == 0) ::usleep(1'000);
  EXPECT_EQ(errno, ESRCH);
}

// Planted bug: nobody waits for them, and they stay as zombies.
TEST(LeftChildren, ThoseThatEndedAreGone) {
  LeftChildren children;
  const pid_t first = Start(children, {"true"});
  const pid_t lasting = Start(children, {"sleep", "1000"});
  const pid_t second = Start(children, {"false"});
  AwaitGone(first);
  AwaitGone(second);
  EXPECT_EQ(::kill(lasting, SIGKILL), 0);
  AwaitGone(lasting);
  AwaitGone(Start(children, {"true"}));
}

// Planted bug: ignore SIGCHLD, so that no command has an exit status any more.
TEST(LeftChildren, CommandsThatSomebodyWaitsForKeepTheirStatus) {
  LeftChildren children;
  const pid_t lasting = Start(children, {"sleep", "1000"});
  const auto ran = RunCommand({"sh", "-c", "echo said; exit 7"});
  ASSERT_TRUE(ran) << ran.error().what;
  EXPECT_EQ(ran->exit_code, 7);
  EXPECT_EQ(ran->output, "said\n");
  ::kill(lasting, SIGKILL);
}

}  // namespace
}  // namespace athanor
