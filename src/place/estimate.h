// When jobs that wait will start at the latest, as far as the time limits of those before them
// tell: the queue played forward with everybody taking all the time it may. Pure.
#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "place/queue.h"

namespace athanor {

// One for each of `view.waiting`, in its order. None: somebody it waits for has no time limit, or
// it will never fit.
std::vector<std::optional<WallTime>> LatestStarts(QueueView view);

}  // namespace athanor
