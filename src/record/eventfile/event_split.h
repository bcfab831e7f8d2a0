// Parts an event file in two where a later attempt took over: a value stays when its step lies
// before the cut of its tag, else it belongs to the abandoned branch. Both parts are whole event
// files. `fd` is read from its start.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace athanor {

// By tag: the first step that no longer counts.
using StepCuts = std::map<std::string, int64_t, std::less<>>;

// How many values lie at or behind the cut of their tag.
Result<uint64_t> CountBehind(int fd, const StepCuts& cuts);

// Appends to `kept` what stays and to `abandoned` what does not. Records that hold no values (the
// version, a graph) are kept; damage and a torn tail are left out. A tag's metadata, which stands
// with its first value, comes again with the first one that is abandoned.
Status SplitByStep(int fd, const StepCuts& cuts, int kept, int abandoned);

}  // namespace athanor
