#include "run/supervisor/launch_supervisor.h"

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/supervisor/test_attempt.h"

namespace athanor {
namespace {

using test::TestAttempt;

// What a container's default filter does: no namespaces, no clone3.
bool ForbidNamespaces() {
  constexpr uint32_t kNew = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNew, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(LaunchSupervisor, SaysWhenTheProgramIsMissing) {
  const auto launched = LaunchSupervisor("/no/such/supervisor", "/plan", ProbeIsolation());
  ASSERT_FALSE(launched.has_value());
  EXPECT_EQ(ErrorCode::kNotFound, launched.error().code);
}

TEST(LaunchSupervisor, SaysWhenThePlanIsBad) {
  TestAttempt attempt;
  attempt.WriteScript("plan", "not a plan");
  auto launched = LaunchSupervisor(ATHANOR_SUPERVISOR_PATH, attempt.path("plan"), {});
  ASSERT_TRUE(launched.has_value());
  const auto ready = ReadAll(launched->ready.get());
  EXPECT_TRUE(StartsWith(*ready, "Eplan: ")) << *ready;
}

TEST(LaunchSupervisor, GivesTheScriptItsOwnViewOfTheMachine) {
  TestAttempt attempt;
  if (!attempt.isolation.pid) GTEST_SKIP() << Join(attempt.isolation.off, "; ");
  ASSERT_TRUE(MakeDirs(attempt.path("ml/input")).ok());
  ASSERT_TRUE(MakeDirs(attempt.path("server")).ok());
  attempt.WriteScript("server/secret", "canary");
  attempt.WriteScript("hosts", "127.0.0.1 algo-1\n");
  attempt.plan.hostname = "algo-1";
  attempt.plan.hide = {attempt.path("server"), "/no/such/path"};
  attempt.plan.mounts = {{attempt.path("ml"), "/opt/ml", false, true},
                         {attempt.path("hosts"), "/etc/hosts", true, true},
                         {"/no/such/source", "/mnt/x", false, false}};
  const bool there = Exists("/opt/ml");
  attempt.Shell(
      "hostname; cat /etc/hosts; ls -A $DIR/server | wc -l; echo model > /opt/ml/model;"
      "(echo x > /etc/hosts) 2>/dev/null || echo read-only;"
      "ls /proc | grep -c '^[0-9]' | grep -qE '^[2-5]$' && echo own-proc; echo $PPID; ls /opt | wc "
      "-l");
  const ExitRecord record = attempt.Run();
  const size_t entries = ListDir("/opt")->size() + (there ? 0 : 1);
  EXPECT_EQ(
      "algo-1\n127.0.0.1 algo-1\n0\nread-only\nown-proc\n1\n" + std::to_string(entries) + "\n",
      attempt.out())
      << attempt.err() << record.setup_error;
  EXPECT_EQ("model\n", attempt.Content("ml/model"));
  EXPECT_EQ(there, Exists("/opt/ml")) << "the host's tree was changed";
  EXPECT_EQ("canary", attempt.Content("server/secret"));
  ASSERT_EQ(1u, record.off.size());
  EXPECT_TRUE(StartsWith(record.off[0], "mount /mnt/x: ")) << record.off[0];
}

// Planted bug: not making the mounts private: they appear on the host.
TEST(LaunchSupervisor, MountsDoNotReachAHostThatSharesItsTree) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to make such a host";
  const pid_t host = ::fork();
  if (host == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0) {
      ::_exit(2);
    }
    bool clean = false;
    {
      TestAttempt attempt;
      (void)MakeDirs(attempt.path("ml"));
      (void)MakeDirs(attempt.path("target"));
      attempt.plan.mounts = {{attempt.path("ml"), attempt.path("target"), false, true}};
      attempt.Shell("grep -c /target /proc/self/mountinfo; exec sleep 1000");
      attempt.Launch();
      const bool inside = test::Eventually([&] { return attempt.out() == "1\n"; });
      const auto mounts = ReadFile("/proc/self/mountinfo");
      clean = inside && mounts && mounts->find("/target") == std::string::npos;
    }
    ::_exit(clean ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(host, ::waitpid(host, &status, 0));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST(LaunchSupervisor, ASourceBelowAHiddenPathCanBeShownAgain) {
  TestAttempt attempt;
  if (!attempt.isolation.mount) GTEST_SKIP() << Join(attempt.isolation.off, "; ");
  const std::string home = attempt.path("home");
  ASSERT_TRUE(MakeDirs(home + "/attempts/a1").ok());
  attempt.WriteScript("home/attempts/a1/file", "mine\n");
  attempt.WriteScript("home/key", "secret\n");
  attempt.plan.hide = {home};
  attempt.plan.mounts = {{home + "/attempts/a1", home + "/attempts/a1", false, true}};
  attempt.plan.ranks[0].cwd = home + "/attempts/a1";
  attempt.Shell("cat file; ls " + home + "; echo new > made");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("mine\nattempts\n", attempt.out()) << attempt.err() << record.setup_error;
  EXPECT_EQ("new\n", attempt.Content("home/attempts/a1/made"));
  EXPECT_EQ("secret\n", attempt.Content("home/key"));
}

// Planted bug: leaving CAP_SYS_ADMIN to a root script: it uncovers what is hidden.
TEST(LaunchSupervisor, ARootScriptCannotUncoverAHiddenPath) {
  TestAttempt attempt;
  if (!test::IsRoot() || !attempt.isolation.mount) GTEST_SKIP() << "needs root and a namespace";
  ASSERT_TRUE(MakeDirs(attempt.path("server")).ok());
  attempt.WriteScript("server/secret", "canary\n");
  attempt.plan.hide = {attempt.path("server")};
  attempt.Shell("umount $DIR/server; cat $DIR/server/secret; nsenter -t 1 -m true; true");
  attempt.Run();
  EXPECT_EQ("", attempt.out());
}

// Planted bug: opening an overlay's folders when they are covered already.
TEST(LaunchSupervisor, AnOverlayMayLieBelowAHiddenPath) {
  TestAttempt attempt;
  if (!test::IsRoot() || !attempt.isolation.mount) GTEST_SKIP() << "needs root and a namespace";
  const std::string home = attempt.path("home");
  for (const char* name : {"/cache", "/ml/code", "/ml/code.work"}) {
    ASSERT_TRUE(MakeDirs(home + name).ok());
  }
  attempt.WriteScript("home/cache/train.py", "kept\n");
  attempt.plan.hide = {home};
  attempt.plan.mounts = {{home + "/ml", "/opt/ml", false, true},
                         {home + "/ml/code", "/opt/ml/code", false, true, home + "/cache"}};
  attempt.Shell("cat /opt/ml/code/train.py; echo new > /opt/ml/code/train.py; ls -A " + home);
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("kept\n", attempt.out()) << attempt.err() << record.setup_error;
  EXPECT_EQ("kept\n", attempt.Content("home/cache/train.py"));
}

TEST(LaunchSupervisor, AHiddenPathMayBeALinkAndWhatIsShownAgainIsReadOnly) {
  TestAttempt attempt;
  if (!attempt.isolation.mount) GTEST_SKIP() << Join(attempt.isolation.off, "; ");
  ASSERT_TRUE(MakeDirs(attempt.path("real/cache/envs/a")).ok());
  ASSERT_TRUE(MakeDirs(attempt.path("real/cache/envs/b")).ok());
  attempt.WriteScript("real/cache/envs/a/file", "shown\n");
  attempt.WriteScript("real/key", "canary\n");
  ASSERT_EQ(0, ::symlink(attempt.path("real").c_str(), attempt.path("home").c_str()));
  const std::string environment = attempt.path("home/cache/envs/a");
  attempt.plan.hide = {attempt.path("home")};
  attempt.plan.mounts = {{environment, environment, true, true}};
  attempt.Shell(
      "cat $DIR/home/cache/envs/a/file; ls $DIR/real $DIR/home/cache/envs;"
      "(echo x > $DIR/home/cache/envs/a/file) 2>/dev/null || echo read-only;"
      "(echo x > $DIR/home/new) 2>/dev/null || echo read-only");
  const ExitRecord record = attempt.Run();
  EXPECT_EQ("shown\n" + attempt.path("home/cache/envs") + ":\na\n\n" + attempt.path("real") +
                ":\ncache\nread-only\nread-only\n",
            attempt.out())
      << attempt.err() << record.setup_error;
  EXPECT_TRUE(record.off.empty()) << Join(record.off, "; ");
}

// Planted bug: leaving CAP_SYS_PTRACE to a root script: the supervisor holds the attempt's folder.
TEST(LaunchSupervisor, AScriptCannotLookIntoTheSupervisorOrSetTheKernel) {
  const auto body = [] {
    TestAttempt attempt;
    if (!attempt.isolation.pid) return true;
    attempt.Shell(
        "for f in /proc/1/fd/*; do readlink $f; done; readlink /proc/1/root;"
        "cat /proc/1/environ /proc/1/maps; p=/proc/sys/kernel/core_pattern;"
        "(cat $p > $p) && echo set; mknod $DIR/disk b 8 0 && echo made; true");
    const ExitRecord record = attempt.Run();
    EXPECT_EQ(0, record.ranks[0].exit_code);
    EXPECT_EQ("", attempt.out());
    return !::testing::Test::HasFailure();
  };
  EXPECT_TRUE(body());
  if (test::IsRoot()) {
    EXPECT_TRUE(test::AsNobody(body));
  }
}

TEST(LaunchSupervisor, LeaksNoDescriptorIntoTheScript) {
  TestAttempt attempt;
  const UniqueFd open(::dup(1));  // without close-on-exec, as a careless library would
  attempt.Python(
      "import os\nprint(sorted(os.listdir('/proc/self/fd'))[:3], "
      "len(os.listdir('/proc/self/fd')), os.read(0, 1))\n");
  attempt.Run();
  // 0, 1, 2 and the listing's own.
  EXPECT_EQ("['0', '1', '2'] 4 b''\n", attempt.out());
}

TEST(LaunchSupervisor, WorksAsAnOrdinaryUser) {
  if (!test::IsRoot()) GTEST_SKIP() << "the other tests ran as an ordinary user already";
  EXPECT_TRUE(test::AsNobody([] {
    TestAttempt attempt;
    (void)MakeDirs(attempt.path("ml"));
    attempt.plan.hostname = "algo-1";
    attempt.plan.mounts = {{attempt.path("ml"), "/opt/ml", false, false}};
    attempt.Shell("id -u; hostname; echo $PPID; echo x > /opt/ml/y; grep CapEff /proc/self/status");
    const ExitRecord record = attempt.Run();
    EXPECT_EQ(0, record.ranks[0].exit_code);
    if (attempt.isolation.pid) {
      EXPECT_EQ("65534\nalgo-1\n1\nCapEff:\t0000000000000000\n", attempt.out()) << attempt.err();
      EXPECT_EQ("x\n", attempt.Content("ml/y"));
      EXPECT_TRUE(attempt.isolation.user);
      EXPECT_TRUE(record.off.empty()) << Join(record.off, "; ");
    }
    return !::testing::Test::HasFailure();
  }));
}

// Planted bug: treating a refused namespace as a failed launch.
TEST(LaunchSupervisor, DegradesWhereNamespacesAreForbiddenAndSaysSo) {
  if (!test::IsRoot()) GTEST_SKIP() << "needs root to become nobody";
  EXPECT_TRUE(test::AsNobody([] {
    if (!ForbidNamespaces()) return false;
    TestAttempt attempt;
    EXPECT_FALSE(attempt.isolation.pid || attempt.isolation.mount || attempt.isolation.uts ||
                 attempt.isolation.user);
    EXPECT_EQ(3u, attempt.isolation.off.size());
    attempt.plan.hostname = "algo-1";
    attempt.plan.hide = {"/srv"};
    attempt.plan.mounts = {{attempt.dir(), "/opt/ml", false, false}};
    attempt.Shell("echo hello; setsid sleep 1000 & exit 4");
    const ExitRecord record = attempt.Run();
    EXPECT_EQ("hello\n", attempt.out());
    EXPECT_EQ(4, record.ranks[0].exit_code);
    EXPECT_TRUE(record.leftovers_killed);
    EXPECT_EQ(3u, record.off.size()) << Join(record.off, "; ");
    EXPECT_EQ(record.off, attempt.started().off);
    return !::testing::Test::HasFailure();
  }));
}

TEST(LaunchSupervisor, AStaleStatusFileFindsNobody) {
  TestAttempt attempt;
  SupervisorStatus status;
  status.pid = ::getpid();
  status.start_ticks = 1;  // not ours
  status.boot_id = std::string(Trim(*ReadFile("/proc/sys/kernel/random/boot_id")));
  attempt.WriteScript("status", *SerializeStatus(status));
  EXPECT_EQ(ErrorCode::kNotFound, FindSupervisor(attempt.plan.status_path).error().code);
}

}  // namespace
}  // namespace athanor
