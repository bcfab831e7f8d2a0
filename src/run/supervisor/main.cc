// athanor-supervisor PLAN READY_FD NAMESPACES
//
// Started by the agent (run/supervisor/launch_supervisor.h) in the namespaces it names.
// See run/supervisor/supervisor.h for what it does. Exit status: 0 when the
// exit record was written, 64 and up when not even that was possible.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "run/supervisor/kv_record.h"
#include "run/supervisor/os.h"
#include "run/supervisor/process_tree.h"
#include "run/supervisor/supervisor.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor::supervisor {
namespace {

// Must come before /proc is mounted again: the old one knows us by our outer pid.
Status WriteStatus(const std::string& path) {
  ProcessInfo self;
  ATHANOR_TRY(const std::string stat, ReadWhole("/proc/self/stat", 4096));
  if (!ParseProcStat(stat, &self)) return Fail(ErrorCode::kBug, "cannot read /proc/self/stat");
  SupervisorStatus status;
  status.pid = self.pid;
  status.start_ticks = static_cast<int64_t>(self.start_ticks);
  if (auto boot = ReadWhole("/proc/sys/kernel/random/boot_id", 64)) {
    status.boot_id = boot->substr(0, boot->find('\n'));
  }
  ATHANOR_TRY(const std::string bytes, SerializeStatus(status));
  ATHANOR_TRY(auto file, RecordFile::Open(path, 0));
  return file.Replace(bytes, false);
}

int TakeSignals() {
  // Signals are read from a descriptor; all others are blocked, so that only SIGKILL can end this
  // process early.
  sigset_t all;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t mine;
  sigemptyset(&mine);
  for (int number : {SIGTERM, SIGUSR2, SIGCHLD}) sigaddset(&mine, number);
  return ::signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
}

int Fail(int ready_fd, const std::string& text, int status) {
  (void)WriteWhole(ready_fd, "E" + text);
  return status;
}

int Main(int argc, char** argv) {
  Namespaces namespaces;
  if (argc != 4 || !Namespaces::Parse(argv[3], &namespaces)) {
    (void)WriteWhole(2, "usage: athanor-supervisor PLAN READY_FD NAMESPACES\n");
    return 64;
  }
  UniqueFd ready(std::atoi(argv[2]));
  (void)::fcntl(ready.get(), F_SETFD, FD_CLOEXEC);
  const int signal_fd = TakeSignals();
  // Whatever the program's file is called.
  (void)::prctl(PR_SET_NAME, kSupervisorName, 0, 0, 0);
  // Without a PID namespace this is what makes orphans ours.
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const auto bytes = ReadWhole(argv[1], kKvLimit);
  if (!bytes) return Fail(ready.get(), bytes.error().what, 66);
  auto plan = ParsePlan(*bytes);
  if (!plan) return Fail(ready.get(), "plan: " + plan.error().what, 65);
  if (const Status status = WriteStatus(plan->status_path); !status.ok()) {
    return Fail(ready.get(), status.error().what, 74);
  }
  Supervisor supervisor(std::move(*plan), namespaces, signal_fd);
  return supervisor.Run(std::move(ready));
}

}  // namespace
}  // namespace athanor::supervisor

int main(int argc, char** argv) { return athanor::supervisor::Main(argc, argv); }
