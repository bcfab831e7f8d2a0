#include "run/supervisor/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "run/supervisor/os.h"

namespace athanor::supervisor {
namespace {

// Goes through a close-on-exec pipe: end of file means exec succeeded.
struct Failure {
  int error = 0;
  char step[16] = {};
  char path[1024] = {};
};

[[noreturn]] void Refuse(int report_fd, const char* step, std::string_view path, int error) {
  Failure failure;
  failure.error = error;
  std::strncpy(failure.step, step, sizeof failure.step - 1);
  std::strncpy(failure.path, std::string(path).c_str(), sizeof failure.path - 1);
  (void)!::write(report_fd, &failure, sizeof failure);
  ::_exit(127);
}

// Everything that would let a rank of root undo its own view or harm the host. Without
// CAP_SYS_PTRACE it cannot look into the supervisor, which has more rights than the rank and
// holds the attempt's folder open; its own processes it may still trace.
constexpr int kDropped[] = {
    CAP_SYS_ADMIN,  CAP_SYS_MODULE,      CAP_SYS_RAWIO,    CAP_SYS_BOOT, CAP_SYS_PTRACE,
    CAP_SYS_TIME,   CAP_MAC_ADMIN,       CAP_MAC_OVERRIDE, CAP_SYSLOG,   CAP_MKNOD,
    CAP_WAKE_ALARM, CAP_DAC_READ_SEARCH, CAP_BPF,          CAP_PERFMON,
};

pid_t Fork(const std::vector<CgroupDir>& cgroups, bool* joined_v2) {
  *joined_v2 = false;
  for (const auto& cgroup : cgroups) {
    if (cgroup.version != 2) continue;
    clone_args args{};
    args.flags = CLONE_INTO_CGROUP;
    args.exit_signal = SIGCHLD;
    args.cgroup = static_cast<uint64_t>(cgroup.dir.get());
    const long pid = ::syscall(SYS_clone3, &args, sizeof args);
    if (pid >= 0) {
      *joined_v2 = true;
      return static_cast<pid_t>(pid);
    }
    break;
  }
  return ::fork();
}

void ResetSignals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) (void)::sigaction(number, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void DropPrivileges(const SupervisorPlan& plan, int report_fd) {
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (plan.drop_capabilities) {
    for (int capability : kDropped) (void)::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  if (plan.gid >= 0) {
    const gid_t gid = static_cast<gid_t>(plan.gid);
    if (::setgroups(1, &gid) != 0 || ::setresgid(gid, gid, gid) != 0) {
      Refuse(report_fd, "uid", "gid " + std::to_string(plan.gid), errno);
    }
  }
  if (plan.uid >= 0) {
    const uid_t uid = static_cast<uid_t>(plan.uid);
    if (::setresuid(uid, uid, uid) != 0) {
      Refuse(report_fd, "uid", "uid " + std::to_string(plan.uid), errno);
    }
  }
  if (plan.no_new_privs && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    Refuse(report_fd, "uid", "no_new_privs", errno);
  }
}

// An ENOENT for a file that is there is about the interpreter of its #! line.
void ExecOne(const std::string& path, char** argv, char** env, int report_fd, int* error) {
  ::execve(path.c_str(), argv, env);
  *error = errno;
  struct stat info {};
  if (errno == ENOENT && ::stat(path.c_str(), &info) == 0) {
    Refuse(report_fd, "interpreter", path, ENOENT);
  }
}

[[noreturn]] void Exec(const RankPlan& rank, int report_fd) {
  std::vector<char*> argv;
  std::vector<char*> env;
  std::string_view search = "/usr/local/bin:/usr/bin:/bin";
  for (const auto& word : rank.argv) argv.push_back(const_cast<char*>(word.c_str()));
  for (const auto& variable : rank.env) {
    env.push_back(const_cast<char*>(variable.c_str()));
    if (variable.compare(0, 5, "PATH=") == 0) search = std::string_view(variable).substr(5);
  }
  argv.push_back(nullptr);
  env.push_back(nullptr);
  int error = 0;
  const std::string& program = rank.argv[0];
  if (program.find('/') != program.npos) {
    ExecOne(program, argv.data(), env.data(), report_fd, &error);
    Refuse(report_fd, "exec", program, error);
  }
  // As a shell does: a name found but not permitted is reported only if no later folder has a
  // better one.
  int worst = ENOENT;
  while (true) {
    const size_t colon = search.find(':');
    const std::string_view folder = search.substr(0, colon);
    ExecOne((folder.empty() ? std::string(".") : std::string(folder)) + "/" + program, argv.data(),
            env.data(), report_fd, &error);
    if (error != ENOENT && error != ENOTDIR) worst = error;
    if (colon == search.npos) break;
    search.remove_prefix(colon + 1);
  }
  Refuse(report_fd, "exec", program, worst);
}

[[noreturn]] void RunChild(const SpawnContext& context, const RankPlan& rank, int out_fd,
                           int err_fd, int report_fd, bool joined_v2) {
  for (const auto& cgroup : *context.cgroups) {
    if (cgroup.version == 2 && joined_v2) continue;
    if (!WriteWhole(cgroup.join.get(), "0")) {
      Refuse(report_fd, "cgroup", cgroup.version == 1 ? "tasks" : "cgroup.procs", errno);
    }
  }
  // Its own session: kill(0, ...) in a script reaches no other rank.
  (void)::setsid();
  if (!context.oom_score_adj.empty()) {
    const UniqueFd fd(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
    if (fd) (void)WriteWhole(fd.get(), context.oom_score_adj);
  }
  ::umask(022);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out_fd, 1) < 0 || ::dup2(err_fd, 2) < 0) {
    Refuse(report_fd, "stdio", "/dev/null", errno);
  }
  for (const auto& limit : context.plan->rlimits) {
    rlimit value{limit.soft, limit.hard};
    rlimit current{};
    const auto which = static_cast<__rlimit_resource>(RlimitNumber(limit.name));
    // An ordinary user cannot raise its hard limit; set as much as is allowed.
    if (::getrlimit(which, &current) == 0 && ::geteuid() != 0 &&
        value.rlim_max > current.rlim_max) {
      value.rlim_max = current.rlim_max;
      if (value.rlim_cur > value.rlim_max) value.rlim_cur = value.rlim_max;
    }
    if (::setrlimit(which, &value) != 0) Refuse(report_fd, "rlimit", limit.name, errno);
  }
  DropPrivileges(*context.plan, report_fd);
  if (::chdir(rank.cwd.c_str()) != 0) Refuse(report_fd, "chdir", rank.cwd, errno);
  ResetSignals();
  Exec(rank, report_fd);
}

}  // namespace

Spawning BeginRank(const SpawnContext& context, const RankPlan& rank, int out_fd, int err_fd) {
  Spawning spawning;
  const auto refused = [&spawning] {
    spawning.start.spawn_errno = errno;
    spawning.start.spawn_step = "fork";
    return std::move(spawning);
  };
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return refused();
  spawning.report.reset(report[0]);
  const UniqueFd write_end(report[1]);
  bool joined_v2 = false;
  spawning.pid = Fork(*context.cgroups, &joined_v2);
  if (spawning.pid == 0) RunChild(context, rank, out_fd, err_fd, report[1], joined_v2);
  if (spawning.pid < 0) return refused();
  return spawning;
}

RankStart FinishRank(Spawning spawning) {
  if (spawning.start.spawn_errno != 0) return spawning.start;
  Failure failure;
  ssize_t n;
  do {
    n = ::read(spawning.report.get(), &failure, sizeof failure);
  } while (n < 0 && errno == EINTR);
  RankStart start;
  if (n == sizeof failure) {
    (void)::waitpid(spawning.pid, nullptr, 0);
    start.spawn_errno = failure.error;
    start.spawn_step = failure.step;
    start.spawn_path = failure.path;
    return start;
  }
  start.inner_pid = spawning.pid;
  return start;
}

}  // namespace athanor::supervisor
