// Removes a job that has ended, with everything that was stored about it.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "door/context.h"

namespace athanor {

// Called on the loop's thread; `done` is called from any. kConflict for a live job.
void RemoveJob(DoorContext& context, JobId id, std::function<void(Status)> done);
// The same for a run, whether it is a job's or not.
void RemoveRun(DoorContext& context, JobId id, std::function<void(Status)> done);

// The folder in which a run stores its files here; empty: it has none here.
std::string ArtifactsOf(const DoorContext& context, JobId run);

}  // namespace athanor
