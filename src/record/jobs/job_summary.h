// What a list shows of a job, made from its record: the same for a row that is stored and for
// one that is told while the job runs. Pure.
#pragma once

#include "record/jobs/job_store.h"

namespace athanor {

// Long commands and causes are cut, at a letter, to what a list keeps.
JobSummary SummaryOf(const JobRecord& record);

}  // namespace athanor
