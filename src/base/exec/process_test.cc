#include "base/exec/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>
#include <thread>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "base/text/text.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;

// Waits, without a clock, until the process behind `pidfd` has ended.
void AwaitEnd(int pidfd) {
  pollfd polled{pidfd, POLLIN, 0};
  while (poll(&polled, 1, -1) < 0 && errno == EINTR) {
  }
}

TEST(RunCommand, GivesExitCodeAndBothStreamsInOrder) {
  const auto result = RunCommand({"/bin/sh", "-c", "echo one; echo two >&2; echo three; exit 7"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 7);
  EXPECT_EQ(result->signal, 0);
  EXPECT_EQ(result->output, "one\ntwo\nthree\n");
  EXPECT_FALSE(result->ok());
}

TEST(RunCommand, KeepsStderrApartWhenAsked) {
  CommandOptions options;
  options.separate_stderr = true;
  const auto result = RunCommand({"sh", "-c", "echo out; echo err >&2"}, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->error_output, "err\n");
  EXPECT_TRUE(result->ok());
}

TEST(RunCommand, InvolvesNoShell) {
  const auto result = RunCommand({"echo", "$(id)", "a b", ";", ""});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "$(id) a b ; \n");
}

TEST(RunCommand, PassesInputDirectoryAndEnvironment) {
  const TestDir dir;
  CommandOptions options;
  options.cwd = dir.path();
  options.environment = {"ONLY=this", "PATH=/usr/bin:/bin"};
  options.stdin_text = std::string(300'000, 'x') + "\n";
  const auto result =
      RunCommand({"/bin/sh", "-c", "pwd; echo $ONLY; echo \"[$HOME]\"; wc -c"}, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, dir.path() + "\nthis\n[]\n300001\n");
  // A program that reads none of its input does no harm.
  EXPECT_TRUE(RunCommand({"true"}, options)->ok());
}

TEST(RunCommand, SaysWhatCannotBeStarted) {
  EXPECT_EQ(RunCommand({"/no/such/program"}).error().code, ErrorCode::kNotFound);
  EXPECT_NE(RunCommand({"no-such-program-x"}).error().what.find("no-such-program-x"),
            std::string::npos);
  EXPECT_EQ(RunCommand({"/etc/passwd"}).error().code, ErrorCode::kDenied);
  EXPECT_EQ(RunCommand({}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(RunCommand({"echo", std::string("a\0b", 3)}).error().code, ErrorCode::kInvalid);
  CommandOptions options;
  options.cwd = "/no/such/folder";
  EXPECT_EQ(RunCommand({"true"}, options).error().code, ErrorCode::kNotFound);
}

TEST(RunCommand, ReportsTheSignalThatEndedIt) {
  const auto result = RunCommand({"/bin/sh", "-c", "kill -SEGV $$"});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, -1);
  EXPECT_EQ(result->signal, SIGSEGV);
}

TEST(RunCommand, KillsTheWholeGroupWhenTheTimeIsUp) {
  CommandOptions options;
  options.timeout = milliseconds(200);
  // The shell's child would run for an hour; it prints its pid.
  const auto result =
      RunCommand({"/bin/sh", "-c", "trap '' TERM; sleep 3600 & echo $!; wait"}, options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
  EXPECT_EQ(result->signal, SIGKILL);
  const pid_t grandchild = std::stoi(result->output);
  const auto identity = IdentityOf(grandchild);
  if (identity) {
    auto pidfd = OpenPidfd(*identity);
    if (pidfd) AwaitEnd(pidfd->get());
    EXPECT_FALSE(IsAlive(*identity));
  }
}

TEST(RunCommand, DoesNotWaitForChildrenLeftBehind) {
  CommandOptions options;
  const auto result = RunCommand({"/bin/sh", "-c", "sleep 3600 & echo $!"}, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 0);
  kill(std::stoi(result->output), SIGKILL);
}

TEST(RunCommand, CapsTheTextButShowsEveryByte) {
  CommandOptions options;
  options.output_limit = 1000;
  size_t seen = 0;
  options.on_output = [&](std::string_view bytes) { seen += bytes.size(); };
  const auto result = RunCommand({"head", "-c", "5000000", "/dev/zero"}, options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output.size(), 1000u);
  EXPECT_TRUE(result->truncated);
  EXPECT_EQ(seen, 5'000'000u);
}

TEST(RunCommand, EndsAProgramThatPrintsWithoutEnd) {
  CommandOptions options;
  options.timeout = milliseconds(100);
  options.output_limit = 10;
  const auto result = RunCommand({"yes"}, options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->timed_out);
}

TEST(RunCommand, KillsTheWholeGroupWhenItIsCancelled) {
  CommandOptions options;
  std::string seen;
  options.on_output = [&](std::string_view bytes) { seen += bytes; };
  options.cancelled = [&] { return seen.find('\n') != std::string::npos; };
  const auto result = RunCommand({"sh", "-c", "sleep 1000 & echo $!; wait"}, options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->cancelled);
  EXPECT_FALSE(result->timed_out);
  EXPECT_FALSE(result->ok());
  EXPECT_EQ(result->signal, SIGKILL);
  if (const auto grandchild = IdentityOf(std::stoi(seen))) {
    auto pidfd = OpenPidfd(*grandchild);
    if (pidfd) AwaitEnd(pidfd->get());
    EXPECT_FALSE(IsAlive(*grandchild));
  }
}

TEST(RunCommand, ACommandThatPrintsWithoutEndCanBeCancelled) {
  CommandOptions options;
  options.output_limit = 1;
  int asked = 0;
  options.cancelled = [&] { return ++asked == 2; };
  const auto result = RunCommand({"yes"}, options);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->cancelled);
  EXPECT_EQ(asked, 2) << "not asked again once it was cancelled";
}

TEST(RunCommand, ChildrenStartWithACleanSlate) {
  const UniqueFd leaked(open("/dev/null", O_RDONLY));  // without O_CLOEXEC, on purpose
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto status = RunCommand({"cat", "/proc/self/status"});
  const auto fds = RunCommand({"ls", "/proc/self/fd"});
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(status);
  EXPECT_NE(status->output.find("SigBlk:\t0000000000000000"), std::string::npos);
  const size_t ignored = status->output.find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos);
  // Only 1 to 31: glibc's spawn leaves the two signals that it reserves ignored.
  EXPECT_EQ(std::stoull(status->output.substr(ignored + 8, 16), nullptr, 16) & 0x7FFFFFFF, 0u);
  ASSERT_TRUE(fds);
  EXPECT_EQ(fds->output, "0\n1\n2\n3\n") << "3 is the folder that ls itself opened";
}

TEST(RunCommand, ManyAtOnceDoNotMixTheirOutput) {
  std::vector<std::thread> threads;
  std::vector<std::string> outputs(8);
  for (size_t i = 0; i < outputs.size(); ++i) {
    threads.emplace_back([&outputs, i] {
      const auto result = RunCommand({"echo", std::to_string(i)});
      outputs[i] = result ? result->output : result.error().what;
    });
  }
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < outputs.size(); ++i) EXPECT_EQ(outputs[i], std::to_string(i) + "\n");
}

TEST(SpawnDetached, StartsANewSessionWithOnlyTheGivenDescriptors) {
  const TestDir dir;
  const UniqueFd log(open((dir / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  // A high number, because the shell opens low ones itself.
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd leaked(fcntl(null.get(), F_DUPFD, 200));
  ASSERT_TRUE(ReplaceFile(dir / "passed", "from three").ok());
  const UniqueFd passed(open((dir / "passed").c_str(), O_RDONLY | O_CLOEXEC));
  DetachedOptions options;
  options.environment = {"PATH=/usr/bin:/bin", "WORD=hello"};
  options.cwd = dir.path();
  options.pass_fds = {passed.get()};
  const auto pid = SpawnDetached(
      {"sh", "-c",
       "echo $WORD $(pwd); echo err >&2; cat; cat <&3; echo; cut -d' ' -f6 /proc/$$/stat; echo $$;"
       "ls /proc/$$/fd | tr '\\n' ' '"},
      log.get(), options);
  ASSERT_TRUE(pid);
  int status = 0;
  ASSERT_EQ(waitpid(*pid, &status, 0), *pid);
  const std::string self = std::to_string(*pid);
  const std::string text = *ReadFile(dir / "log");
  EXPECT_TRUE(StartsWith(
      text, "hello " + dir.path() + "\nerr\nfrom three\n" + self + "\n" + self + "\n0 1 2 3 "))
      << text;
  EXPECT_EQ(text.find(" " + std::to_string(leaked.get()) + " "), std::string::npos) << text;
}

TEST(SpawnDetached, PassesDescriptorsWhateverTheirNumbers) {
  const TestDir dir;
  const UniqueFd log(open((dir / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(ReplaceFile(dir / "a", "A").ok());
  ASSERT_TRUE(ReplaceFile(dir / "b", "B").ok());
  UniqueFd a(open((dir / "a").c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd b(open((dir / "b").c_str(), O_RDONLY | O_CLOEXEC));
  DetachedOptions options;
  // The later number first: a plain dup2 in order could overwrite the other.
  options.pass_fds = {std::max(a.get(), b.get()), std::min(a.get(), b.get())};
  const auto pid = SpawnDetached({"sh", "-c", "cat <&3; cat <&4"}, log.get(), options);
  ASSERT_TRUE(pid);
  ASSERT_EQ(waitpid(*pid, nullptr, 0), *pid);
  EXPECT_EQ(ReadFile(dir / "log"), a.get() > b.get() ? "AB" : "BA");
}

TEST(SpawnDetached, SaysWhatCannotBeStarted) {
  EXPECT_EQ(SpawnDetached({"/no/such/agent"}, 2).error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(SpawnDetached({"true"}, 9999));
}

TEST(Identity, IsKeptWhileItLivesAndLostWithTheProcess) {
  const auto pid = SpawnDetached({"sleep", "3600"}, 2);
  ASSERT_TRUE(pid);
  const auto identity = IdentityOf(*pid);
  ASSERT_TRUE(identity);
  EXPECT_TRUE(IsAlive(*identity));
  EXPECT_FALSE(ReapIfEnded(*pid));
  const auto pidfd = OpenPidfd(*identity);
  ASSERT_TRUE(pidfd);

  const ProcessIdentity other{*pid, identity->start_time + 1};
  EXPECT_FALSE(IsAlive(other));
  EXPECT_EQ(OpenPidfd(other).error().code, ErrorCode::kNotFound);

  ASSERT_TRUE(SendSignal(pidfd->get(), SIGKILL).ok());
  AwaitEnd(pidfd->get());
  EXPECT_FALSE(IsAlive(*identity)) << "it is a zombie now";
  EXPECT_TRUE(ReapIfEnded(*pid));
  EXPECT_FALSE(IsAlive(*identity));
  EXPECT_EQ(SendSignal(pidfd->get(), SIGTERM).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(OpenPidfd(*identity).error().code, ErrorCode::kNotFound);
}

TEST(Identity, IsNotFooledByTheProgramsName) {
  const TestDir dir;
  const std::string trick = dir / ") Z 1 (";
  ASSERT_TRUE(RunCommand({"cp", "/bin/sleep", trick})->ok());
  const auto pid = SpawnDetached({trick, "3600"}, 2);
  ASSERT_TRUE(pid);
  const auto identity = IdentityOf(*pid);
  ASSERT_TRUE(identity);
  EXPECT_TRUE(IsAlive(*identity));
  const auto self = IdentityOf(getpid());
  ASSERT_TRUE(self);
  EXPECT_GE(identity->start_time, self->start_time);
  kill(*pid, SIGKILL);
  waitpid(*pid, nullptr, 0);
  EXPECT_EQ(IdentityOf(*pid).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace athanor
