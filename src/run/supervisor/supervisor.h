// The life of one attempt on one host, from the plan to the exit record. One
// thread, one loop: signals in, output moved, children reaped.
//
// Signals it takes: SIGTERM asks every rank's main program to end (again each
// time it comes) and starts the grace time, within which programs that appear
// below its shells are asked too; SIGUSR2 kills all at once. Both lead to an
// exit record; SIGKILL of the supervisor does not, but as the namespace's init
// it takes every process with it. All others are ignored. When the folder of
// the exit record is removed, all is killed.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "run/exit_record.h"
#include "run/memory_watch.h"
#include "run/stop_round.h"
#include "run/supervisor/mounts.h"
#include "run/supervisor/os.h"
#include "run/supervisor/output.h"
#include "run/supervisor/spawn.h"
#include "run/supervisor_plan.h"

namespace athanor::supervisor {

class Supervisor {
 public:
  Supervisor(SupervisorPlan plan, Namespaces namespaces, int signal_fd);

  // Runs to the end. `ready_fd` gets "S" when the ranks are started, or "E"
  // and a text. The process's exit status: 0 when the exit record was written.
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
  void WatchMemory();  // kills one process when the limit that we hold is passed
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

  bool have_children_ = false;
  bool killing_ = false;
  int64_t drain_again_ms_ = 0;  // streams are left alone until then
  int64_t room_again_ms_ = 0;   // streams that wait for room are left alone until then
  bool waits_for_room_ = false;
  int64_t stop_asked_ms_ = -1;
  int64_t kill_ranks_ms_ = -1;  // deadline of the grace
  int64_t folder_again_ms_ = 0;  // whether the record's folder is there is looked at then
  int64_t ask_again_ms_ = -1;   // who has appeared since is asked then; -1: nobody is asked to stop
  int64_t memory_again_ms_ = 0;  // the memory is looked at then, if it is watched
  int64_t last_rank_ended_ms_ = -1;
  int64_t killing_since_ms_ = -1;
};

}  // namespace athanor::supervisor
