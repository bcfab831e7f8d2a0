// The points of one metric as lines of JSON, for the native routes.
#pragma once

#include <string>

#include "door/context.h"
#include "door/doors.h"

namespace athanor {

// All of them, by step, sent as the client reads them. On a reader's thread.
void SendPoints(DoorContext& context, const Call& call, JobId run, const std::string& name,
                bool with_abandoned);

}  // namespace athanor
