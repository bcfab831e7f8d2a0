// What people are shown of a job: the states of the table, and three views of them. The only
// place that decides it, so that lists, pages, streams and `ath` agree.
//
//   Stopping      a stop was asked for, and it is not over yet
//   Interrupting  its machine is being taken away
//   Unknown       its agent has not been heard of for a while. Silence is not death: the script
//                 may well go on, and nothing is decided about it
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "job/record.h"

namespace athanor {

inline constexpr Millis kSilentAfter{30'000};
inline constexpr std::string_view kViews[] = {"Stopping", "Interrupting", "Unknown"};

// Since when its agent is silent; none: it is heard of, or there is nothing to hear.
std::optional<WallTime> SilentSince(const JobRecord& record, WallTime now);
std::string_view ShownState(const JobRecord& record, WallTime now);
// Why it is in the state that is shown; of a view, what that means and what to type next.
Cause ShownCause(const JobRecord& record, WallTime now);

}  // namespace athanor
