// Typed ids of the nouns.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace athanor {

using JobId = Id<struct JobTag>;
using AttemptId = Id<struct AttemptTag>;

// A rank is one process of an attempt, 0-based over all hosts.
struct Rank {
  uint32_t value = 0;
  auto operator<=>(const Rank&) const = default;
};

}  // namespace athanor
