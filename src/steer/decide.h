// Decide is the complete behaviour of a job: from what is known and what happened, to what is known
// next and what must be done. It is pure; the engine stores its answer before acting on it.
//
// An attempt runs on hosts that start and end together: the job is Preparing once the first agent
// is up, Running once the first host's ranks started, Uploading once the ranks of all hosts are
// over, and it ends when nothing more is expected of any host. The first rank or host that falls
// decides how; the others are then told to stop (steer/reports.h).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "job/effect.h"
#include "job/event.h"
#include "job/record.h"

namespace athanor {

struct Outcome {
  JobRecord record;
  std::vector<StoredEvent> events;  // empty: nothing worth keeping happened
  std::vector<Effect> effects;      // ids are given by the engine
};

// kConflict: the event is of an attempt that has ended or was replaced, or of a host that was given
// up (the sender is fenced off), or the state forbids it. kInvalid: the attempt has no such host.
// The record is then unchanged.
Result<Outcome> Decide(JobRecord record, const JobEvent& event, WallTime now);

}  // namespace athanor
