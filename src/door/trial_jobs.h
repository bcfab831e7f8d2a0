// Trials of tuning jobs as jobs of this server: drafted and submitted in the same way as those of
// POST /api/v1/jobs, stopped like all others.
#pragma once

#include "door/context.h"
#include "study/trial_runner.h"

namespace athanor {

class TrialJobs final : public TrialRunner {
 public:
  explicit TrialJobs(DoorContext& context) : context_(context) {}

  void Submit(const TrialOrder& order, std::function<void(Result<JobId>)> done) override;
  void Stop(JobId job, const Cause& cause) override;
  int64_t LiveCostMicros(JobId job) override;
  Result<TrialSight> Look(JobId job, const std::string& metric) override;
  Result<std::optional<JobId>> FindKey(const TrialOrder& order) override;
  LastWords Listen(JobId job) override;

 private:
  DoorContext& context_;
};

// What the draft of a trial would refuse is refused before the study is accepted: once with every
// parameter, and once with only those that are always set.
Status CheckTrials(const DoorContext& context, const StudySpec& spec, const std::string& user);

}  // namespace athanor
