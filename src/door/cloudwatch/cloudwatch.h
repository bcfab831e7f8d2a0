// CloudWatch Logs and CloudWatch over what Athanor stores of every job, however it was submitted:
// the group /aws/sagemaker/TrainingJobs has one log stream per host, the namespace of that name the
// job's series. Read-only: only jobs write.
#pragma once

#include <string_view>

#include "base/exec/clock.h"
#include "base/text/json.h"
#include "door/aws/aws_front.h"
#include "record/jobs/job_store.h"
#include "record/logs/log_store.h"
#include "record/series/series_store.h"

namespace athanor {

// The sources of the answers. Threads: safe from any.
struct CloudWatchSources {
  const Clock& clock;
  const JobStore& jobs;
  const LogStore& logs;
  const SeriesStore& series;
};

// The members of the answer; times of metrics in milliseconds (see query_form.h).
using CloudWatchReply = tl::expected<Json, AwsError>;

// These read files and may take long: not for the loop's thread.
CloudWatchReply AnswerLogs(const CloudWatchSources& sources, std::string_view operation,
                           const Json& request);
CloudWatchReply AnswerMetrics(const CloudWatchSources& sources, std::string_view operation,
                              const Json& request);
// An error of a store, in a form that makes clients retry.
AwsError StoreFault(const Error& error);

void RegisterCloudWatch(AwsFront& front, DoorContext& context);

}  // namespace athanor
