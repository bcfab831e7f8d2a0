// How tuning jobs look in the native API.
#pragma once

#include "base/json.h"
#include "study/record.h"

namespace athanor {

// What lists show: state, counts, the best trial.
Json StudyRowView(const StudyRecord& record);
// Everything: the spec, every trial, best so far, importance, hints.
Json StudyView(const StudyRecord& record);

}  // namespace athanor
