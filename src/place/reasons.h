// The text for a wait: which resource, how much, and what will end it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "job/record.h"
#include "place/amounts.h"
#include "place/queue.h"

namespace athanor {

// What a running job holds; known latest ends first, then by id.
struct Hold {
  const RunningJob* job = nullptr;
  std::optional<WallTime> ends_by;  // in the future, or unknown
};

Cause NeverFits(const WaitingJob& job, const Inventory& inventory);
Cause BackingOff(const WaitingJob& job, WallTime now);
// The head of the line: what it lacks and whose end gives it.
Cause HeadLacks(const WaitingJob& job, const Amounts& free, const Inventory& inventory,
                const std::vector<Hold>& holds, WallTime now);
// A job after the head that lacks something itself. `ahead` jobs are before it.
Cause Lacks(const WaitingJob& job, const Amounts& free, const Inventory& inventory, size_t ahead);
// A job after the head for which there would be room.
Cause NotItsTurn(const WaitingJob& job, const WaitingJob& head, const Amounts& free,
                 const Inventory& inventory);

}  // namespace athanor
