// Runs that were deleted stay in the trash, from which they can be restored, and go for good after
// some days, when `ath gc` runs: with their points, artifacts and, for a job's run, all of the job.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "door/context.h"

namespace athanor {

struct TrashedRun {
  JobId id;
  uint64_t bytes = 0;  // of its files; what it shares with others is not counted
};

struct Trash {
  std::vector<TrashedRun> due;  // deleted before the time that was asked for
  uint64_t kept = 0;            // deleted since, or still live
  uint64_t bytes() const;
};

// Reads folders: on a thread that may wait. `live` are jobs that are not over.
Trash LookIntoTrash(const DoorContext& context, WallTime before, const std::vector<JobRecord>& live);
// Removes them, one after the other. Called on the loop's thread; `done` comes from any.
void EmptyTrash(DoorContext& context, std::vector<TrashedRun> due,
                std::function<void(Status)> done);

}  // namespace athanor
