// What a new study takes over from earlier ones. Their parameters and ranges may differ: a
// parameter that is missing takes its default, one that is unknown is passed over. Pure.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "study/record.h"

namespace athanor {

// Of the same objective: every finished trial, as an observation. With spec.transfer, whatever the
// objective: the three best of all parents are tried first, moved into the ranges. kInvalid when
// the objective is another and transfer was not asked for.
Result<std::vector<StudyEvent>> WarmStart(const StudySpec& spec,
                                          const std::vector<StudyRecord>& parents, WallTime now);

}  // namespace athanor
