// Ids increase within a process (base/ids.h). With this, they also increase across restarts.
#pragma once

#include "base/ids.h"

namespace athanor {

// From now on, new ids are greater than `id`. Code that stores ids calls this when it starts.
// Otherwise, if the clock was set back, new ids could be older than stored ones. Safe from any
// thread.
void KeepIdsAbove(const Ulid& id);

}  // namespace athanor
