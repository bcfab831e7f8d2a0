// Removing a job that is over with everything that was kept of it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "door/context.h"

namespace athanor {

// Called on the loop's thread; `done` comes from any. kConflict for a live job.
void RemoveJob(DoorContext& context, JobId id, std::function<void(Status)> done);
// The same for a run, be it a job's or not.
void RemoveRun(DoorContext& context, JobId id, std::function<void(Status)> done);

// The folder of what a run keeps here; empty: it keeps nothing here.
std::string ArtifactsOf(const DoorContext& context, JobId run);

}  // namespace athanor
