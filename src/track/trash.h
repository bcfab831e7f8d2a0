// Deleted runs stay in the trash, from which they can be restored. Some days later, `ath gc`
// removes them permanently: with their points, artifacts and, for a job's run, the whole job
// (steer/removal.h).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "job/ids.h"
#include "record/layout.h"

namespace athanor {

class LogStore;
class RunBook;

struct TrashedRun {
  JobId id;
  uint64_t bytes = 0;  // of its files; what it shares with others is not counted
};

struct Trash {
  std::vector<TrashedRun> due;  // deleted before the time that was asked for
  uint64_t kept = 0;            // deleted since, or still live
  uint64_t bytes() const;
  std::vector<JobId> ids() const;  // of those that are due
};

// Reads folders: call it on a thread that may wait. `live` are jobs that have not ended.
Trash LookIntoTrash(RunBook& runs, const LogStore& logs, const StoreLayout& layout, WallTime before,
                    const std::set<JobId>& live);

// The folder in which a run stores its artifacts here; empty: it has none here.
std::string ArtifactFolderOf(const RunBook& runs, const StoreLayout& layout, JobId run);

}  // namespace athanor
