// The search expressions of `ath runs --filter` and of the page: MLflow's grammar (track/filter.h),
// and also the forms that people type. Parameters and tags that are numbers can be compared as
// numbers, values need no quotes, and `state = failed`, `name` and `user` are understood.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "track/filter.h"

namespace athanor {

// kInvalid says which fields and comparisons exist.
Result<std::vector<Clause>> ParseOwnFilter(std::string_view text);

}  // namespace athanor
