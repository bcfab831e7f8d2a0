// When waiting jobs will start at the latest, according to the time limits of those before them:
// the queue projected forward, with every job taking all the time it may. Pure.
#pragma once

#include <optional>
#include <vector>

#include "base/exec/clock.h"
#include "place/queue.h"

namespace athanor {

// One for each of `view.waiting`, in its order. None: it waits for a job without a time limit, or
// it will never fit.
std::vector<std::optional<WallTime>> LatestStarts(QueueView view);

}  // namespace athanor
