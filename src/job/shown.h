// What people see of a job: the states of the table, and three views of them. Only this code
// decides it, so that lists, pages, streams and `ath` agree.
//
//   Stopping      a stop was asked for, and it is not over yet
//   Interrupting  its machine is being taken away
//   Unknown       its agent has not been heard of for a while. Silence is not death: the script
//                 may well go on, and nothing is decided about it
//
// Also the one duration that lists, pages and `ath` call "took": from when its script first ran
// until the job ended, or now. Waiting for a place and preparing are not part of it; being
// interrupted and waiting to continue are. A job whose script never ran took nothing ("-"): its
// waiting time is counted from its creation.
#pragma once

#include <optional>
#include <string_view>

#include "base/exec/clock.h"
#include "job/record.h"

namespace athanor {

inline constexpr Millis kSilentAfter{30'000};
inline constexpr std::string_view kViews[] = {"Stopping", "Interrupting", "Unknown"};

// Since when its agent has been silent; of a gang, the one that has been silent the longest. None:
// they report, or there is no agent to hear from.
std::optional<WallTime> SilentSince(const JobRecord& record, WallTime now);
std::string_view ShownState(const JobRecord& record, WallTime now);
// When its script first ran; 0: never.
WallTime FirstStarted(const JobRecord& record);
// The same word for a run without a job: "FINISHED", as MLflow calls it, is "Completed".
std::string_view ShownStatus(std::string_view mlflow_status);
// Why it is in the state that is shown; for a view, what it means and what to type next.
Cause ShownCause(const JobRecord& record, WallTime now);

}  // namespace athanor
