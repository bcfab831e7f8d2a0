// What a list shows of a job, made from its record: the same for a stored row and for one that is
// sent while the job runs. Pure.
#pragma once

#include <string_view>

#include "record/jobs/job_store.h"

namespace athanor {

// Long commands and causes are cut, between characters, to what a list stores.
// Its `type` has nodes and processes in front if there are several: "2x4 ml.m5.large", "2x4".
JobSummary SummaryOf(const JobRecord& record);

// The two parts of a summary's `type`.
struct RanksAndType {
  std::string_view ranks;  // "2x4"; empty: one
  std::string_view type;
};
RanksAndType PartsOfType(std::string_view type);

}  // namespace athanor
