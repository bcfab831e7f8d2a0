// Who calls from inside a job. What runs there has the uid of the server's user but must never be
// taken for that user: it has the tokens of its job, and nothing more.
//
// A process is inside a job if it is, or descends from, one of ours that runs users' code: a
// supervisor, which is init or subreaper of all that a script starts, so that nothing leaves it;
// an agent, whose installers run code of packages; or `ath exec`. They are known by the names that
// the kernel keeps for them, which only they themselves can change. So nothing need be remembered:
// it holds at once after a restart, and for each back end that runs jobs by agent and supervisor.
// Those above the server itself do not count: a server in a job has callers beside it.
//
// What cannot be told counts as inside: a process that is gone, a socket that no process holds.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/executor.h"
#include "base/pool.h"
#include "net/http_types.h"

namespace athanor {

// At most 15 bytes, as the kernel keeps them; the supervisor has others (supervisor_status.h).
inline constexpr char kAgentName[] = "athanor-agent";
inline constexpr char kExecName[] = "athanor-exec";
void NameThisProcess(const char* name);

bool IsInsideJob(pid_t pid);

// For each socket (inode of `uid`'s) that a process outside of all jobs holds: that process.
// Looks at the descriptors of `uid`'s processes, those of `first` before all others and then the
// youngest: 50 ms where there are a thousand.
std::map<uint64_t, pid_t> HoldersOutside(const std::vector<uint64_t>& inodes, uint32_t uid,
                                         const std::vector<pid_t>& first = {});

// Threads: the executor's; sockets are looked for on the pool, all that wait in one go.
class JobPeers {
 public:
  // `attempts_dir` has an entry for each attempt on this machine: while it has none, TCP peers
  // are not looked for.
  JobPeers(Executor& executor, Pool& pool, std::string attempts_dir);

  // Whether the peer, of whom the kernel told a uid, is outside: now or later.
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
  std::vector<pid_t> recent_;  // who held a socket lately: most who call once call again
  bool looking_ = false;
};

}  // namespace athanor
