// What people are shown of a job: the states of the table, and three views of them. The only
// place that decides it, so that lists, pages, streams and `ath` agree.
//
//   Stopping      a stop was asked for, and it is not over yet
//   Interrupting  its machine is being taken away
//   Unknown       its agent has not been heard of for a while. Silence is not death: the script
//                 may well go on, and nothing is decided about it
//
// And the one duration that lists, pages and `ath` call "took": from when its script first ran
// until the job ended, or now. Waiting for a place and preparing come before it; being interrupted
// and waiting to go on are part of it. A job whose script never ran took nothing ("-"): how long it
// has been waiting is counted from when it was created.
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
// When its script ran first; 0: it never did.
WallTime FirstStarted(const JobRecord& record);
// The same word for a run that no job made: "FINISHED", as MLflow calls it, is "Completed".
std::string_view ShownStatus(std::string_view mlflow_status);
// Why it is in the state that is shown; of a view, what that means and what to type next.
Cause ShownCause(const JobRecord& record, WallTime now);

}  // namespace athanor
