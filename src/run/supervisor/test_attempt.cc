#include "run/supervisor/test_attempt.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/io/files.h"

namespace athanor::test {
namespace {

constexpr uid_t kNobody = 65534;

std::string Value(const Result<std::string>& text) { return text ? *text : std::string(); }

}  // namespace

bool Eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

bool IsRoot() { return ::geteuid() == 0; }

bool AsNobody(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const gid_t group = kNobody;
    if (::setgroups(1, &group) != 0 || ::setresgid(group, group, group) != 0 ||
        ::setresuid(kNobody, kNobody, kNobody) != 0) {
      ::_exit(3);
    }
    const bool passed = body() && !::testing::Test::HasFailure();
    ::fflush(nullptr);
    ::_exit(passed ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TestAttempt::TestAttempt() : isolation(ProbeIsolation()) {
  char name[] = "/tmp/athanor-run-test-XXXXXX";
  dir_ = ::mkdtemp(name);
  plan.status_path = path("status");
  plan.started_path = path("started");
  plan.exit_path = path("exit");
  plan.stop_grace_ms = 60'000;
  plan.peer_grace_ms = 60'000;
  plan.linger_ms = 200;
  AddRank();
}

TestAttempt::~TestAttempt() {
  if (launched_ && !collected_) {
    (void)KillAllNow(launched_->pidfd.get());
    (void)::waitpid(launched_->pid, nullptr, 0);
  }
  if (!::testing::Test::HasFailure()) (void)RemoveTree(dir_);
}

void TestAttempt::AddRank() {
  const std::string number = std::to_string(plan.ranks.size());
  RankPlan rank;
  rank.argv = {"true"};
  rank.env = {"PATH=/usr/local/bin:/usr/bin:/bin", "DIR=" + dir_, "RANK=" + number};
  rank.cwd = dir_;
  rank.stdout_path = path("out" + number);
  rank.stderr_path = path("err" + number);
  plan.ranks.push_back(std::move(rank));
}

void TestAttempt::WriteScript(const std::string& name, const std::string& text) const {
  ASSERT_TRUE(ReplaceFile(path(name), text, 0755).ok());
}

void TestAttempt::Shell(const std::string& text, size_t rank) {
  plan.ranks[rank].argv = {"sh", "-c", text};
}

void TestAttempt::Python(const std::string& text, size_t rank) {
  const std::string name = "script" + std::to_string(rank) + ".py";
  WriteScript(name, text);
  plan.ranks[rank].argv = {"/usr/bin/python3", path(name)};
}

void TestAttempt::WritePlan() const {
  const auto bytes = SerializePlan(plan);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().what;
  ASSERT_TRUE(ReplaceFile(path("plan"), *bytes).ok());
}

void TestAttempt::Launch() {
  WritePlan();
  auto launched = LaunchSupervisor(ATHANOR_SUPERVISOR_PATH, path("plan"), isolation);
  ASSERT_TRUE(launched.has_value()) << launched.error().what;
  launched_ = std::move(*launched);
  ready_ = Value(ReadAll(launched_->ready.get()));
}

void TestAttempt::WaitForEnd() {
  pollfd fd{launched_->pidfd.get(), POLLIN, 0};
  ASSERT_EQ(1, ::poll(&fd, 1, 120'000)) << "the supervisor hangs";
  int status = 0;
  ASSERT_EQ(launched_->pid, ::waitpid(launched_->pid, &status, 0));
  collected_ = true;
  EXPECT_EQ(0, WEXITSTATUS(status));
  EXPECT_FALSE(WIFSIGNALED(status));
}

ExitRecord TestAttempt::Run() {
  Launch();
  if (!launched_) return {};
  WaitForEnd();
  return record();
}

ExitRecord TestAttempt::record() const {
  const auto bytes = ReadFile(plan.exit_path);
  EXPECT_TRUE(bytes.has_value()) << "no exit record";
  if (!bytes) return {};
  const auto parsed = ParseExit(*bytes);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().what;
  if (!parsed) return {};
  EXPECT_EQ(plan.ranks.size(), parsed->ranks.size());
  return *parsed;
}

StartedRecord TestAttempt::started() const {
  const auto parsed = ParseStarted(Value(ReadFile(plan.started_path)));
  EXPECT_TRUE(parsed.has_value());
  return parsed ? *parsed : StartedRecord();
}

std::string TestAttempt::out(size_t rank) const {
  return Value(ReadFile(plan.ranks[rank].stdout_path));
}
std::string TestAttempt::err(size_t rank) const {
  return Value(ReadFile(plan.ranks[rank].stderr_path));
}
std::string TestAttempt::Content(const std::string& name) const {
  return Value(ReadFile(path(name)));
}

std::string TestAttempt::Await(const std::string& name) const {
  std::string text;
  EXPECT_TRUE(Eventually([&] { return !(text = Content(name)).empty(); })) << "no " << name;
  return text;
}

}  // namespace athanor::test
