// Processes: run a command and wait for it, start one that outlives us, and recognise one later. No
// shell is involved: argv is what the program gets, and argv[0] is looked up in our PATH if it has
// no slash. Every child starts with the default handling of signals 1 to 31, an empty signal mask
// and none of our descriptors except those named here.
//
// Threads: everything here is safe from any thread. RunCommand blocks its caller,
// so the control thread never calls it. A program that waits for any child
// (waitpid(-1)) would steal the status from RunCommand.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

struct CommandOptions {
  std::string cwd;                                      // empty: ours
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; unset: ours
  std::string stdin_text;
  std::chrono::milliseconds timeout{0};  // 0: none
  // Called about ten times per second, on the caller's thread; true ends the command.
  std::function<bool()> cancelled;
  size_t output_limit = 16u << 20;  // of each text; the rest is read and dropped
  bool separate_stderr = false;     // otherwise stderr is part of `output`, in order
  // Gets every byte of stdout and stderr as it arrives, regardless of the limit.
  std::function<void(std::string_view)> on_output;
};

struct CommandResult {
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;
  std::string output;
  std::string error_output;  // only with separate_stderr
  bool timed_out = false;
  bool cancelled = false;
  bool truncated = false;

  bool ok() const { return exit_code == 0 && !timed_out && !cancelled; }
};

// kNotFound, kDenied: the program cannot be started. A program that fails, is killed or is too slow
// is a CommandResult. If the time is up, or the command is cancelled, its whole process group gets
// SIGKILL. Returns when the program itself has ended; it does not wait for children that still hold
// our pipe.
Result<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                 const CommandOptions& options = {});

struct DetachedOptions {
  std::string cwd;                                      // empty: ours
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; unset: ours
  std::vector<int> pass_fds;                            // become descriptors 3, 4, ...
};

// Starts a program in a new session, stdin from /dev/null, stdout and stderr to
// `log_fd`. Returns once the program runs (or could not be started: kNotFound,
// kDenied) and does not wait for its end; it stays our child, so the caller reaps
// it (ReapIfEnded, left_children.h) or leaves it to init by ending first.
Result<pid_t> SpawnDetached(const std::vector<std::string>& argv, int log_fd,
                            const DetachedOptions& options = {});
// True if `child` had ended and is now removed from the process table.
bool ReapIfEnded(pid_t child);

// A pid identifies a process only together with the time when that process started, in clock ticks
// since boot. Not unique across reboots.
struct ProcessIdentity {
  pid_t pid = 0;
  uint64_t start_time = 0;
  bool operator==(const ProcessIdentity&) const = default;
};

Result<ProcessIdentity> IdentityOf(pid_t pid);  // kNotFound if there is none
bool IsAlive(const ProcessIdentity& identity);  // a zombie is not alive
// kNotFound if that process is gone, even if its pid belongs to another process now.
Result<UniqueFd> OpenPidfd(const ProcessIdentity& identity);
Status SendSignal(int pidfd, int signal);

}  // namespace athanor
