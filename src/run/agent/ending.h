// What an attempt's end means: from the supervisor's record and the last lines to
// an ExitInfo and a Cause.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/record.h"
#include "link/job_files.h"
#include "link/plan.h"
#include "link/wire.h"
#include "run/supervisor/exit_record.h"

namespace athanor {

struct Ending {
  const AttemptPlan* plan = nullptr;
  JobFiles* files = nullptr;         // where the source is read; null: it cannot be
  std::optional<ExitRecord> record;  // none: supervisor and script disappeared together
  std::optional<StopFrame> stop;     // requested by the server or the time limit
  std::string stdout_tail;           // of the rank that fell first, or else of the first
  std::string stderr_tail;
  std::string failure_text;    // of output/failure
  std::string ml = "/opt/ml";  // where the script saw it: elsewhere without a mount namespace
  bool done_called = false;
  bool captured = false;  // a step of athanor.capture() was kept
  int64_t saved_ms = -1;  // from the notice to the newest change of a checkpoint; -1: none
};

// Where an attempt has several ranks, the cause names the one that fell. A stop because another
// host fell does not explain the end of a rank that had fallen before it came.
std::pair<ExitInfo, Cause> Explain(const Ending& ending);

// Whether a rank with this cause most likely ended because another one did.
bool LostAnotherRank(const Cause& cause);

// The rank of this host that fell first, counted on this host; 0 if none did.
uint32_t FirstFallen(const std::optional<ExitRecord>& record);
// How its ranks ended, in the order of their end, with their numbers over all hosts.
std::vector<RankEnd> EndsOf(const ExitRecord& record, uint32_t first_rank);

}  // namespace athanor
