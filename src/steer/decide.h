// Decide is the complete behaviour of a job: from what is known and what happened, to what is known
// next and what must be done. It is pure; the engine stores its answer before acting on it.
#pragma once

#include <optional>
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

// kConflict: the event is of an attempt that has ended or was replaced (the sender is fenced off),
// or the state forbids it. The record is then unchanged.
Result<Outcome> Decide(JobRecord record, const JobEvent& event, WallTime now);

}  // namespace athanor
