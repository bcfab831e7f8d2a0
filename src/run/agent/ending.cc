#include "run/agent/ending.h"

#include <algorithm>
#include <cstring>

#include "base/text/text.h"
#include "job/host_folder.h"
#include "run/agent/job_surroundings.h"
#include "run/contract/contract.h"
#include "run/supervisor/oom_log.h"
#include "watch/diagnose/diagnose.h"
#include "watch/diagnose/log_patterns.h"

namespace athanor {
namespace {

// A process of the attempt that was killed for memory, as far as it is known.
std::string LostChild(const ExitRecord& record, const AttemptPlan& plan) {
  std::string name = record.oom_name;
  int64_t pid = record.oom_pid;
  if (pid == 0) {
    if (const auto kill = FindOomKill(HostFolderName(plan.attempt, plan.host))) {
      name = kill->name;
      pid = kill->pid;
    }
  }
  if (pid == 0) return "unknown";
  return Printable(name) + ", pid " + std::to_string(pid);
}

ExitInfo ExitOf(const ExitRecord& record, const AttemptPlan& plan, bool done_called) {
  ExitInfo exit;
  exit.done_called = done_called;
  exit.disk_full = record.disk_full;
  const size_t first = FirstFallen(record);
  exit.first_rank = FirstRank(plan) + static_cast<uint32_t>(first);
  if (record.cgroup.memory_peak > 0) {
    exit.memory_peak = static_cast<uint64_t>(record.cgroup.memory_peak);
  }
  if (record.cgroup.memory_limit > 0) {
    exit.memory_limit = static_cast<uint64_t>(record.cgroup.memory_limit);
  }
  if (!record.setup_error.empty()) {
    exit.spawn_error = record.setup_error;
    exit.code = 127;
  }
  for (const auto& rank : record.ranks) {
    exit.log_dropped += static_cast<uint64_t>(rank.out.dropped + rank.err.dropped);
    exit.cpu_ms += rank.cpu_us / 1000;
  }
  if (record.cgroup.cpu_ns > 0) exit.cpu_ms = record.cgroup.cpu_ns / 1'000'000;
  if (first < record.ranks.size()) {
    const auto& rank = record.ranks[first];
    exit.signal = static_cast<int32_t>(rank.signal);
    exit.code = rank.signal != 0 ? -1 : static_cast<int32_t>(rank.exit_code);
    // An OOM kill of a helper process that the script survived is not its end.
    exit.oom_killed = record.cgroup.oom_kills > 0 && rank.exit_code != 0;
    if (record.cgroup.oom_kills > 0 && !exit.oom_killed) exit.oom_child = LostChild(record, plan);
    if (exit.memory_peak == 0) exit.memory_peak = static_cast<uint64_t>(rank.max_rss_kb) * 1024;
    if (rank.start.spawn_errno != 0) {
      exit.spawn_error =
          rank.start.spawn_path + ": " + std::strerror(static_cast<int>(rank.start.spawn_errno));
    }
  }
  return exit;
}

// Not because the host was told to stop, which is about no rank in particular.
bool NamesItsRank(const Ending& ending, const std::optional<StopFrame>& stop) {
  return ending.record && ending.record->first_failed_rank >= 0 && !stop &&
         HostCount(*ending.plan) * RanksHere(*ending.plan) > 1;
}

std::string NameOfFallen(const Ending& ending) {
  const auto rank = std::to_string(FirstRank(*ending.plan) + FirstFallen(ending.record));
  return "rank " + rank + " on " + HostName(*ending.plan);
}

}  // namespace

bool LostAnotherRank(const Cause& cause) {
  return cause.Is(CauseKind::kWorkerDied) || cause.Is(CauseKind::kNetworkError);
}

uint32_t FirstFallen(const std::optional<ExitRecord>& record) {
  return record && record->first_failed_rank > 0 ? static_cast<uint32_t>(record->first_failed_rank)
                                                 : 0;
}

std::vector<RankEnd> EndsOf(const ExitRecord& record, uint32_t first_rank) {
  std::vector<std::pair<int64_t, RankEnd>> ends;
  for (size_t i = 0; i < record.ranks.size(); ++i) {
    const auto& rank = record.ranks[i];
    if (rank.exit_code < 0) continue;  // it never ran: the host itself could not be set up
    RankEnd end;
    end.rank = first_rank + static_cast<uint32_t>(i);
    end.code = rank.signal != 0 ? -1 : static_cast<int32_t>(rank.exit_code);
    end.signal = static_cast<int32_t>(rank.signal);
    end.ran_ms = rank.wall_ms;
    ends.emplace_back(rank.ended, end);
  }
  std::stable_sort(ends.begin(), ends.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RankEnd> all;
  for (const auto& [order, end] : ends) all.push_back(end);
  return all;
}

std::pair<ExitInfo, Cause> Explain(const Ending& ending) {
  const auto& spec = ending.plan->spec;
  EndEvidence evidence;
  if (ending.record) evidence.exit = ExitOf(*ending.record, *ending.plan, ending.done_called);
  auto stop = ending.stop;
  if (stop && stop->cause.Is(CauseKind::kPeerFailed) && ending.record &&
      ending.record->fell_by_itself) {
    stop.reset();
  }
  if (stop) evidence.stop = StopRequest{stop->cause, "", {}, Millis(stop->grace_ms)};
  evidence.stdout_tail = ending.stdout_tail;
  evidence.stderr_tail = ending.stderr_tail;
  evidence.failure_file = ending.failure_text;
  evidence.limits = spec.limits;
  evidence.command = spec.command;
  evidence.code_dir = ending.ml + "/code";
  evidence.captured = ending.captured;
  const JobSurroundings around(*ending.plan, ending.files);
  evidence.around = &around;
  evidence.environment = spec.environment;
  evidence.gpus = spec.resources.gpus;
  auto cause = ForJob(Diagnose(evidence), spec.name);
  if (NamesItsRank(ending, stop)) cause.text = NameOfFallen(ending) + ": " + cause.text;
  auto exit = evidence.exit.value_or(ExitInfo{});
  if (ending.record && stop && ending.record->stop_to_end_ms >= 0) {
    exit.notice_ms = ending.record->stop_to_end_ms;
    exit.saved_ms = ending.saved_ms;
    // After our signal, status 0 is a clean exit, not the end of the work.
    if (cause.Is(CauseKind::kCompleted) && !exit.done_called) cause = stop->cause;
  }
  exit.matched = MatchedPatterns(spec.retry, ending.stdout_tail + "\n" + ending.stderr_tail);
  return {std::move(exit), cause};
}

}  // namespace athanor
