// Reads the times that Rfc3339() (base/exec/clock.h) writes.
#pragma once

#include <optional>
#include <string_view>

#include "base/exec/clock.h"

namespace athanor {

// "2026-11-15T20:25:53.120Z", with any number of digits in the fraction or none; only UTC, and only
// times that exist. Digits beyond milliseconds are cut off.
std::optional<WallTime> ParseRfc3339(std::string_view text);

}  // namespace athanor
