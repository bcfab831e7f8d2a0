// How an agent starts a supervisor and finds one again. The supervisor is started in its own
// namespaces as far as the kernel allows; what is not allowed is reported in short phrases, never
// silently missing.
//
// Threads: every function may be called from any thread. The supervisor is a child of this process
// until this process ends, and outlives it. The process that launched it reaps it with waitpid once
// `pidfd` is readable.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "run/supervisor/supervisor_status.h"

namespace athanor {

// What this process may give a supervisor. A PID namespace comes only with a
// mount namespace, because a /proc of other pids would mislead the script.
struct Isolation {
  bool user = false;  // made to allow the others, for an ordinary user
  bool pid = false;
  bool mount = false;
  bool uts = false;
  std::vector<std::string> off;  // "mount namespace: Operation not permitted; /opt/ml ..."
};

// Tries it with a short-lived child, first everything and then less, step by step. Takes about half
// a millisecond.
Isolation ProbeIsolation();
// The same, determined once: the answer is valid for the life of the process. Needed before the
// plan is written, which must not require mounts that are not possible.
const Isolation& OurIsolation();

// One sentence if jobs are not isolated from the server's files and from each other; otherwise
// empty.
std::string OpenJobs(const Isolation& isolation);

struct LaunchedSupervisor {
  pid_t pid = 0;
  UniqueFd pidfd;  // readable when it ended
  // Reads "S" when every rank is started or refused, "E" and a text when there
  // will be no rank, and end of file.
  UniqueFd ready;
};

// Starts `program` on the plan in that file; in the network namespace of that descriptor, if there
// is one (only for root). kNotFound, kDenied: it could not be executed. kExhausted, kUnavailable:
// no process could be made.
Result<LaunchedSupervisor> LaunchSupervisor(const std::string& program,
                                            const std::string& plan_path,
                                            const Isolation& isolation, int network_fd = -1);

// The supervisor next to this program, or where an installation has it.
Result<std::string> DefaultSupervisorPath();

struct FoundSupervisor {
  SupervisorStatus status;
  UniqueFd pidfd;
};

// The one that wrote `status_path`, if it still runs. kNotFound: it has ended
// (or the machine was rebooted), so an exit record is there or never will be.
Result<FoundSupervisor> FindSupervisor(const std::string& status_path);

// Its ranks' output does not fit on the disk: they wait, or will wait as soon as their pipes are
// full. False if it has ended.
bool WaitsForRoom(int64_t supervisor_pid);

// Both succeed if it has already ended.
Status AskToStop(int pidfd);   // SIGTERM: its ranks are asked to end, and the grace time starts
Status KillAllNow(int pidfd);  // SIGUSR2: its ranks are killed, the exit record is written

}  // namespace athanor
