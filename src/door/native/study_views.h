// How tuning jobs look in the native API.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/text/json.h"
#include "job/unread.h"
#include "study/record.h"

namespace athanor {

// What lists show: state, counts, the best trial.
Json StudyRowView(const StudyRecord& record);
// Everything: the spec, every trial, best so far, importance, hints. `began`: when the script of a
// trial's job first ran (job/shown.h), by the job's id; a trial without it waits. `unread`:
// parameters that its first trials did not read (job/unread.h).
Json StudyView(const StudyRecord& record, const std::map<std::string, int64_t>& began,
               const std::vector<UnreadParam>& unread);

}  // namespace athanor
