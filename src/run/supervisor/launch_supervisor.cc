#include "run/supervisor/launch_supervisor.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/io/files.h"
#include "base/text/text.h"
#include "run/supervisor/process_tree.h"

namespace athanor {
namespace {

// linux/close_range.h is younger than some C libraries' own declaration.
constexpr unsigned kCloseRangeCloexec = 1u << 2;

unsigned long FlagsOf(const Isolation& isolation) {
  unsigned long flags = 0;
  if (isolation.user) flags |= CLONE_NEWUSER;
  if (isolation.pid) flags |= CLONE_NEWPID;
  if (isolation.mount) flags |= CLONE_NEWNS;
  if (isolation.uts) flags |= CLONE_NEWUTS;
  return flags;
}

// fork() with namespaces and a pidfd. The child has one thread and a copy of
// the memory; until exec it calls nothing that takes a lock.
pid_t Clone(unsigned long flags, int* pidfd) {
#if defined(__x86_64__) || defined(__aarch64__)
  return static_cast<pid_t>(
      ::syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, nullptr, pidfd, nullptr, nullptr));
#else
#error "the argument order of clone(2) differs by architecture"
#endif
}

bool WriteTo(const char* path, const char* text, size_t size) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = ::write(fd, text, size) == static_cast<ssize_t>(size);
  const int error = errno;
  ::close(fd);
  errno = error;
  return written;
}

// The same user inside as outside: scripts see their own user. Capabilities would be lost by an
// exec of a user who is not root, so they are made ambient for the supervisor, which takes them
// from the ranks again.
bool EnterUserNamespace(uid_t uid, gid_t gid) {
  char map[64];
  if (!WriteTo("/proc/self/setgroups", "deny", 4) && errno != ENOENT) return false;
  int size = std::snprintf(map, sizeof map, "%u %u 1", gid, gid);
  if (!WriteTo("/proc/self/gid_map", map, static_cast<size_t>(size))) return false;
  size = std::snprintf(map, sizeof map, "%u %u 1", uid, uid);
  if (!WriteTo("/proc/self/uid_map", map, static_cast<size_t>(size))) return false;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  for (auto& word : data) word.inheritable = word.permitted;
  if (::syscall(SYS_capset, &header, data) != 0) return false;
  for (int capability : {CAP_SYS_ADMIN, CAP_KILL, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH}) {
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) return false;
  }
  return true;
}

// All signals are blocked while the child is created, so that no handler of this process runs in
// it, and so that a SIGTERM for the supervisor stays pending until it can read it (an init without
// a handler would lose it).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// 0, or the errno of the first thing refused.
int TryOut(const Isolation& isolation) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  int fd = -1;
  pid_t pid;
  {
    SignalsBlocked blocked;
    pid = Clone(FlagsOf(isolation), &fd);
    if (pid == 0) {
      int error = 0;
      if (isolation.user && !EnterUserNamespace(uid, gid)) error = errno;
      if (error == 0 && isolation.mount &&
          (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
           ::mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") != 0)) {
        error = errno;
      }
      if (error == 0 && isolation.pid &&
          ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
        error = errno;
      }
      if (error == 0 && isolation.uts && ::sethostname("probe", 5) != 0) error = errno;
      ::_exit(error & 0xff);
    }
  }
  if (pid < 0) return errno;
  const UniqueFd pidfd(fd);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

[[noreturn]] void BecomeSupervisor(const char* const* argv, const Isolation& isolation, uid_t uid,
                                   gid_t gid, int ready_fd, int report_fd, int network_fd) {
  static const char* const kNoEnvironment[] = {nullptr};
  int error = 0;
  if (network_fd >= 0 && ::setns(network_fd, CLONE_NEWNET) != 0) error = errno;
  if (error == 0 && isolation.user && !EnterUserNamespace(uid, gid)) error = errno;
  if (error == 0) {
    // Detached from our terminal and process group: Ctrl-C here is not meant for it.
    (void)::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && null >= 0; ++fd) (void)::dup2(null, fd);
    (void)::syscall(SYS_close_range, 3u, ~0u, kCloseRangeCloexec);
    (void)::fcntl(ready_fd, F_SETFD, 0);
    ::execve(argv[0], const_cast<char**>(argv), const_cast<char**>(kNoEnvironment));
    error = errno;
  }
  (void)!::write(report_fd, &error, sizeof error);
  ::_exit(127);
}

std::string ModeOf(const Isolation& isolation) {
  std::vector<std::string> names;
  if (isolation.user) names.emplace_back("user");
  if (isolation.pid) names.emplace_back("pid");
  if (isolation.mount) names.emplace_back("mount");
  if (isolation.uts) names.emplace_back("uts");
  return names.empty() ? "none" : Join(names, ",");
}

// Above the standard streams, which the child replaces.
Status MakePipe(UniqueFd* read_end, UniqueFd* write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("make a pipe", errno);
  for (int& end : ends) {
    if (end > 2) continue;
    const int higher = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
    ::close(end);
    end = higher;
  }
  read_end->reset(ends[0]);
  write_end->reset(ends[1]);
  return Ok();
}

}  // namespace

Isolation ProbeIsolation() {
  const bool user = ::geteuid() != 0;
  // pid, mount, uts
  constexpr bool kSteps[][3] = {{true, true, true},
                                {true, true, false},
                                {false, true, true},
                                {false, true, false},
                                {false, false, true}};
  Isolation found;
  int first_error = 0;
  for (const auto& step : kSteps) {
    Isolation trial;
    trial.user = user;
    trial.pid = step[0];
    trial.mount = step[1];
    trial.uts = step[2];
    const int error = TryOut(trial);
    if (error == 0) {
      found = trial;
      break;
    }
    if (first_error == 0) first_error = error;
  }
  const std::string reason = std::strerror(first_error);
  if (!found.pid) {
    found.off.push_back("PID namespace: " + reason + "; the script sees the host's processes");
  }
  if (!found.mount) {
    found.off.push_back("mount namespace: " + reason +
                        "; jobs can read and change this server's files and each other's, and "
                        "/opt/ml is not provided: use the paths in SM_*");
  }
  if (!found.uts) {
    found.off.push_back("UTS namespace: " + reason + "; the script sees the host's name");
  }
  return found;
}

const Isolation& OurIsolation() {
  static const Isolation found = ProbeIsolation();
  return found;
}

std::string OpenJobs(const Isolation& isolation) {
  if (isolation.mount) return {};
  return "this machine gives jobs no mount namespace: a script can read and change this server's "
         "files, with all secrets, and other jobs'";
}

Result<LaunchedSupervisor> LaunchSupervisor(const std::string& program,
                                            const std::string& plan_path,
                                            const Isolation& isolation, int network_fd) {
  UniqueFd ready_read, ready_write, report_read, report_write;
  ATHANOR_CHECK_OK(MakePipe(&ready_read, &ready_write));
  ATHANOR_CHECK_OK(MakePipe(&report_read, &report_write));
  const std::string ready_number = std::to_string(ready_write.get());
  const std::string mode = ModeOf(isolation);
  const char* const argv[] = {program.c_str(), plan_path.c_str(), ready_number.c_str(),
                              mode.c_str(), nullptr};
  LaunchedSupervisor launched;
  int pidfd = -1;
  {
    const uid_t uid = ::geteuid();
    const gid_t gid = ::getegid();
    SignalsBlocked blocked;
    launched.pid = Clone(FlagsOf(isolation), &pidfd);
    if (launched.pid == 0) {
      BecomeSupervisor(argv, isolation, uid, gid, ready_write.get(), report_write.get(),
                       network_fd);
    }
  }
  if (launched.pid < 0) return FailErrno("start the supervisor", errno);
  launched.pidfd.reset(pidfd);
  launched.ready = std::move(ready_read);
  ready_write.reset();
  report_write.reset();
  int error = 0;
  ssize_t n;
  do {
    n = ::read(report_read.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  if (n == sizeof error) {
    (void)::waitpid(launched.pid, nullptr, 0);
    return FailErrno("start " + program, error);
  }
  return launched;
}

Result<std::string> DefaultSupervisorPath() {
  char link[4096];
  const ssize_t n = ::readlink("/proc/self/exe", link, sizeof link);
  if (n <= 0) return FailErrno("read /proc/self/exe", errno);
  const std::string folder = DirName(std::string_view(link, static_cast<size_t>(n)));
  const std::string beside = JoinPath(folder, "athanor-supervisor");
  const std::string installed = JoinPath(folder, "../libexec/athanor/athanor-supervisor");
  for (const auto& path : {beside, installed}) {
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Fail(ErrorCode::kNotFound, "the program athanor-supervisor is missing",
              "put it beside the athanor program: " + beside);
}

Result<FoundSupervisor> FindSupervisor(const std::string& status_path) {
  ATHANOR_TRY(const std::string bytes, ReadFile(status_path, 4096));
  ATHANOR_TRY(auto status, ParseStatus(bytes));
  const auto gone = [&] {
    return Fail(ErrorCode::kNotFound, "the supervisor of " + status_path + " has ended");
  };
  ATHANOR_TRY(const std::string boot, ReadFile("/proc/sys/kernel/random/boot_id", 64));
  if (Trim(boot) != status.boot_id) return gone();
  FoundSupervisor found;
  found.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(status.pid), 0)));
  if (!found.pidfd) return gone();
  // Checked after the pidfd is open: it cannot refer to another process any more.
  ProcessInfo info;
  if (!ReadProcess("/proc", static_cast<int>(status.pid), &info) || info.state == 'Z' ||
      static_cast<int64_t>(info.start_ticks) != status.start_ticks) {
    return gone();
  }
  found.status = std::move(status);
  return found;
}

bool WaitsForRoom(int64_t supervisor_pid) {
  const auto name = ReadFile("/proc/" + std::to_string(supervisor_pid) + "/comm", 64);
  return name && Trim(*name) == kWaitsForRoomName;
}

namespace {

Status Signal(int pidfd, int number) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0 || errno == ESRCH) {
    return Ok();
  }
  return FailErrno("signal the supervisor", errno);
}

}  // namespace

Status AskToStop(int pidfd) { return Signal(pidfd, SIGTERM); }
Status KillAllNow(int pidfd) { return Signal(pidfd, SIGUSR2); }

}  // namespace athanor
