// The life of one attempt on one host, from the plan to the exit record. One
// thread, one loop: signals in, output moved, children reaped.
//
// Signals: SIGTERM asks the main program of every rank to end (again each time it comes) and starts
// the grace time, in which programs that appear below its shells are asked too. SIGUSR2 kills
// everything at once. Both lead to an exit record. SIGKILL of the supervisor does not, but because
// it is the init of the namespace, every process ends with it. All others are ignored. If the
// folder of the exit record is removed, everything is killed.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "run/supervisor/exit_record.h"
#include "run/supervisor/memory_watch.h"
#include "run/supervisor/mounts.h"
#include "run/supervisor/os.h"
#include "run/supervisor/output.h"
#include "run/supervisor/spawn.h"
#include "run/supervisor/stop_round.h"
#include "run/supervisor/supervisor_plan.h"

namespace athanor::supervisor {

class Supervisor {
 public:
  Supervisor(SupervisorPlan plan, Namespaces namespaces, int signal_fd);

  // Runs to the end. `ready_fd` gets "S" when the ranks are started, or "E" and a text. Returns the
  // exit status of the process: 0 if the exit record was written.
  int Run(UniqueFd ready_fd);

 private:
  struct Rank {
    pid_t pid = 0;  // 0: not running
    int out = -1;   // index into streams_
    int err = -1;
    int64_t started_ms = 0;
    StopRound stop;
  };

  Status OpenFiles();
  Status OpenStreams();
  void OpenCgroups();
  void ProtectFromOom();
  void StartRanks();
  void Fell(size_t rank);
  void WriteStarted();
  void Loop();
  void WaitForSomething(bool streams, int64_t until_ms);
  void TakeSignals();
  void Reap();
  void RankEnded(size_t index, int status, const rusage& usage);
  void DrainAll(int64_t limit);
  void SayWhetherItWaits();  // for room on the disk
  void EndWithFolder(int64_t now);
  void FinishStreams();
  void AskRanksToStop();
  void AskWhoIsToBeAsked();  // of the ranks, now
  void WatchMemory();        // kills one process if the limit that we enforce is exceeded
  void KillEverything();
  void ApplyDeadlines();
  int64_t NextDeadline() const;
  bool AnyRankRuns() const;
  void ReadCgroupCounters();
  int Finish();

  const SupervisorPlan plan_;
  const Namespaces namespaces_;
  const int signal_fd_;

  std::optional<RecordFile> started_file_;
  std::optional<RecordFile> exit_file_;
  std::vector<CgroupDir> cgroups_;
  UniqueFd outer_proc_;
  std::string oom_score_adj_;

  std::optional<MemoryWatch> memory_;
  std::vector<OutputStream> streams_;
  std::vector<Rank> ranks_;
  ExitRecord record_;

  int64_t ends_ = 0;  // of ranks, so far
  bool have_children_ = false;
  bool killing_ = false;
  int64_t drain_again_ms_ = 0;  // streams are not read until then
  int64_t room_again_ms_ = 0;   // streams that wait for room are not tried until then
  bool waits_for_room_ = false;
  int64_t stop_asked_ms_ = -1;
  int64_t kill_ranks_ms_ = -1;   // deadline of the grace
  int64_t folder_again_ms_ = 0;  // then it checks whether the record's folder exists
  int64_t ask_again_ms_ = -1;    // then new processes are asked; -1: no stop was requested
  int64_t memory_again_ms_ = 0;  // then the memory is checked, if it is watched
  int64_t last_rank_ended_ms_ = -1;
  int64_t killing_since_ms_ = -1;
};

}  // namespace athanor::supervisor
