// The queue as `place` sees it, made from the engine's records. What places jobs and what people
// are shown of the line are made here (Engine::ViewLine), so that they agree.
#pragma once

#include <utility>
#include <vector>

#include "job/record.h"
#include "place/queue.h"
#include "price/catalogue.h"

namespace athanor {

// The line at one back end.
struct LineView {
  QueueView view;
  std::vector<JobRecord*> waiting;                             // as in the view; the engine's
  std::vector<std::pair<const JobRecord*, Error>> impossible;  // they need more than it ever has
};

// How long an attempt holds its room after its script started: its limit and its grace time. 0: not
// known.
Millis LongestRun(const JobRecord& record);

RunningJob ViewOfRunning(const JobRecord& record);
// What it waits for, as far as its record says; the engine adds its rest and who overtook it.
Result<WaitingJob> ViewOfWaiting(const JobRecord& record, const Catalogue& catalogue,
                                 const Inventory& inventory, bool simulate);

}  // namespace athanor
