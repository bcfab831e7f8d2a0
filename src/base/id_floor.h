// Ids rise within a process (base/ids.h); with this they rise across restarts, too.
#pragma once

#include "base/ids.h"

namespace athanor {

// From now on new ids are above `id`. Who keeps ids says so when it starts, lest a clock that was
// set back meanwhile makes new ones older than those it has. Safe from any thread.
void KeepIdsAbove(const Ulid& id);

}  // namespace athanor
