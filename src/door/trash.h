// Deleted runs stay in the trash, from which they can be restored. Some days later, `ath gc`
// removes them permanently: with their points, artifacts and, for a job's run, the whole job.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/exec/clock.h"
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

// Reads folders: call it on a thread that may wait. `live` are jobs that have not ended.
Trash LookIntoTrash(const DoorContext& context, WallTime before,
                    const std::vector<JobRecord>& live);
// Removes them, one after the other. Called on the loop's thread; `done` is called from any.
void EmptyTrash(DoorContext& context, std::vector<TrashedRun> due,
                std::function<void(Status)> done);

}  // namespace athanor
