// Finds callers inside a job. Processes there have the uid of the server's user but must never
// count as that user: they have the tokens of their job, and nothing more.
//
// A process is inside a job if it is, or descends from, one of ours that runs users' code: a
// supervisor, which is init or subreaper of everything that a script starts, so that nothing
// escapes it; an agent, whose installers run code of packages; or `ath exec`. They are recognised
// by their names in the kernel, which only they can change. So nothing has to be remembered: this
// works at once after a restart, and for every back end that runs jobs by agent and supervisor.
// Ancestors of the server itself do not count: a server inside a job has callers next to it.
//
// If it cannot be determined, it counts as inside: a process that is gone, a socket that no process
// holds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/executor.h"
#include "base/exec/pool.h"
#include "net/http/http_types.h"

namespace athanor {

// At most 15 bytes, as the kernel keeps them; the supervisor has others (supervisor_status.h).
inline constexpr char kAgentName[] = "athanor-agent";
inline constexpr char kExecName[] = "athanor-exec";
void NameThisProcess(const char* name);

bool IsInsideJob(pid_t pid);

// For each socket (inode of `uid`'s) that a process outside of all jobs holds: that process. Looks
// at the descriptors of `uid`'s processes, first those of `first`, then the youngest: 50 ms for a
// thousand.
std::map<uint64_t, pid_t> HoldersOutside(const std::vector<uint64_t>& inodes, uint32_t uid,
                                         const std::vector<pid_t>& first = {});

// Threads: the executor's; sockets are searched for on the pool, all waiting ones together.
class JobPeers {
 public:
  // `attempts_dir` has an entry for each attempt on this machine: while it has none, TCP peers are
  // not searched for.
  JobPeers(Executor& executor, Pool& pool, std::string attempts_dir);

  // Whether the peer, whose uid the kernel reported, is outside: now or later.
  void Judge(const Peer& peer, std::function<void(bool outside)> done);

 private:
  struct Asker {
    uint64_t inode = 0;
    uint32_t uid = 0;
    std::function<void(bool outside)> done;
  };
  void Look();
  void Found(pid_t holder);

  Executor& executor_;
  Pool& pool_;
  std::string attempts_dir_;
  std::vector<Asker> waiting_;
  std::vector<pid_t> recent_;  // who held a socket recently: most callers call again
  bool looking_ = false;
};

}  // namespace athanor
