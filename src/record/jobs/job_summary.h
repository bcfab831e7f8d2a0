// What a list shows of a job, made from its record: the same for a stored row and for one that is
// sent while the job runs. Pure.
#pragma once

#include "record/jobs/job_store.h"

namespace athanor {

// Long commands and causes are cut, between characters, to what a list stores.
JobSummary SummaryOf(const JobRecord& record);

}  // namespace athanor
