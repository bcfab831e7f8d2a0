// The log:PATTERN entries of retry.on that a text contains. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/spec.h"

namespace athanor {

// The complete entries, in their order; a pattern that does not compile matches nothing.
std::vector<std::string> MatchedPatterns(const RetrySpec& retry, std::string_view text);

}  // namespace athanor
