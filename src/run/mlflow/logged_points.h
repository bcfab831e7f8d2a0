// The points in a call of an MLflow client (log-metric, log-batch), for code of the agent that acts
// on what the job logs. Pure.
#pragma once

#include <cstdint>

#include "job/ids.h"
#include "job/point.h"
#include "run/mlflow/call_spool.h"

namespace athanor {

// Numbered as the server numbers them (link/kept_call.h), in `channel`. Empty: the call logs no
// metrics, or those of another run than `run`. What the server would refuse is left out as far as
// it can be told.
PointBatch LoggedPoints(const KeptCall& call, uint32_t channel, JobId run);

}  // namespace athanor
