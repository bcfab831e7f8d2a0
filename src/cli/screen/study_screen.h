// How a study looks on a terminal: lines as trials end, and the page of `ath tune show`.
#pragma once

#include <string>

#include "base/text/json.h"
#include "cli/screen/output.h"

namespace athanor {

// "trial 7   done     0.1234   best 0.1 (trial 3)   lr=0.01 layers=2"
std::string TrialLine(const Json& study, const Json& trial, const Terminal& terminal);
// State and reason, best so far, the trials, importance, hints.
std::string StudyPage(const Json& study, const Terminal& terminal);
// One row per trial: number, state, value, then every parameter.
std::string StudyCsv(const Json& study);

}  // namespace athanor
