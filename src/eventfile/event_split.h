// Splits an event file in two where a later attempt took over: a value stays if its step is before
// the cut of its tag, otherwise it belongs to the abandoned branch. Both parts are complete event
// files. `fd` is read from its start.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace athanor {

// By tag: the first step that no longer counts.
using StepCuts = std::map<std::string, int64_t, std::less<>>;

// How many values are at or after the cut of their tag.
Result<uint64_t> CountBehind(int fd, const StepCuts& cuts);

// Appends to `kept` what stays and to `abandoned` what does not. Records without values (the
// version, a graph) are kept; damage and a torn tail are left out. The metadata of a tag, which is
// part of its first value, is repeated with the first abandoned one.
Status SplitByStep(int fd, const StepCuts& cuts, int kept, int abandoned);

}  // namespace athanor
