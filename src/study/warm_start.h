// What a new study takes over from earlier ones. Their parameters and ranges may differ: a missing
// parameter gets its default, an unknown one is skipped. Pure.
#pragma once

#include <vector>

#include "base/exec/clock.h"
#include "base/result.h"
#include "study/record.h"

namespace athanor {

// Of the same objective: every finished trial, as an observation. With spec.transfer, for any
// objective: the three best of all parents are tried first, moved into the ranges. kInvalid if the
// objective is different and transfer was not requested.
Result<std::vector<StudyEvent>> WarmStart(const StudySpec& spec,
                                          const std::vector<StudyRecord>& parents, WallTime now);

}  // namespace athanor
