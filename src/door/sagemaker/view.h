// A job as DescribeTrainingJob shows it: the original request, returned as it came, and what became
// of it. Every job has this view, however it was submitted. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/json.h"
#include "job/event.h"
#include "job/record.h"
#include "record/series/series_store.h"

namespace athanor::sagemaker {

std::string TrainingJobArn(std::string_view region, std::string_view name);

struct Shown {
  const JobRecord& record;
  const std::vector<StoredEvent>& events;
  const std::vector<SeriesSummary>& metrics;
  std::string region;
  const Json* changes;  // made to the request since (UpdateTrainingJob); null: none
};
Json DescribeView(const Shown& shown);

std::string StatusOf(const JobRecord& record);  // InProgress, Stopping, Completed, Failed, Stopped
std::string StatusOf(JobState state);           // without Stopping
std::string SecondaryStatusOf(const JobRecord& record);
// Why it failed, at most 1,024 characters; empty unless it did.
std::string FailureReason(const JobRecord& record);

// Rules are stored and not evaluated: one status each, and what DescribeProcessingJob says about
// it.
inline constexpr char kNotEvaluated[] =
    "not evaluated: this version does not run SageMaker's debugger and profiler rules yet";
std::string RuleJobName(std::string_view job, std::string_view list, size_t index);

double Seconds(WallTime at);  // since 1970, with fraction

}  // namespace athanor::sagemaker
