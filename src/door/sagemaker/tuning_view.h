// A study as DescribeHyperParameterTuningJob and its lists show it. Pure.
#pragma once

#include <string>

#include "base/text/json.h"
#include "job/record.h"
#include "study/record.h"

namespace athanor::sagemaker {

std::string TuningJobArn(std::string_view region, std::string_view name);
// InProgress, Stopping, Completed, Failed, Stopped.
std::string TuningStatusOf(const StudyRecord& record);
// The training job's name, for a trial of this study.
std::string TrialNameOf(const StudyRecord& record, const TrialRecord& trial);

// `best` is the best trial's job; null: unknown.
Json DescribeTuningView(const StudyRecord& record, const std::string& region,
                        const JobRecord* best);
// One of ListTrainingJobsForHyperParameterTuningJob. `job` may be null.
Json TrialSummaryView(const StudyRecord& record, const TrialRecord& trial,
                      const std::string& region, const JobRecord* job);
// One of ListHyperParameterTuningJobs.
Json TuningSummaryView(const StudyRecord& record, const std::string& region);

}  // namespace athanor::sagemaker
