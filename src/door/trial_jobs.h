// Trials of tuning jobs as jobs of this server: drafted and submitted by the same way as those of
// POST /api/v1/jobs, stopped like any other.
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

// The parameters of a study's trials are the jobs' own: what the draft of one would refuse is
// refused before the study is accepted, with every parameter and with only those that are always
// there.
Status CheckTrials(const DoorContext& context, const StudySpec& spec, const std::string& user);

}  // namespace athanor
