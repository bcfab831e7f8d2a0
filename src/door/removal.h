// Removing a job that is over with everything that was kept of it.
#pragma once

#include <functional>

#include "base/result.h"
#include "door/context.h"

namespace athanor {

// Called on the loop's thread; `done` comes from any. kConflict for a live job.
void RemoveJob(DoorContext& context, JobId id, std::function<void(Status)> done);

}  // namespace athanor
