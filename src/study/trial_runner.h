// What a tuning job needs from the rest of the server: trials are ordinary jobs, submitted, watched
// and stopped like all others. The server's implementation is door/trial_jobs.h, the one for tests
// fake_trials.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/ids.h"
#include "job/record.h"
#include "study/record.h"
#include "tune/stopping.h"

namespace athanor {

struct TrialOrder {
  StudyId study;
  StudySpec spec;
  std::string user;
  int64_t trial = 0;
  std::string params;  // JSON object
  uint32_t losses = 0;
  uint32_t promotions = 0;
  std::string resume_job;  // whose newest checkpoint it continues from; empty: it starts
  // The same for the same try of the same trial, so that a restart never runs it twice.
  std::string key() const {
    auto text =
        "study:" + study.ToString() + ":" + std::to_string(trial) + ":" + std::to_string(losses);
    return promotions == 0 ? text : text + ":" + std::to_string(promotions);
  }
};
inline TrialOrder OrderOf(const StudyRecord& record, const TrialRecord& trial) {
  return {record.id,    record.spec,  record.user,      trial.number,
          trial.params, trial.losses, trial.promotions, trial.resume_job};
}

// A trial's job as it is now.
struct TrialSight {
  JobState state = JobState::kQueued;
  Cause cause;
  int64_t cost_micros = 0;
  int64_t held_ms = 0;
  // Of the objective, in order; a point without a step uses its position (from 1) instead.
  std::vector<tune::CurvePoint> points;
};

struct LastWords {
  std::string lines;                 // the last ones of its log
  std::vector<std::string> metrics;  // that it did report
};

class TrialRunner {
 public:
  virtual ~TrialRunner() = default;

  // On the executor's thread; `done` is called there, when the job is durable. A key that exists
  // already returns the earlier job.
  virtual void Submit(const TrialOrder& order, std::function<void(Result<JobId>)> done) = 0;
  virtual void Stop(JobId job, const Cause& cause) = 0;  // fine if it is over
  virtual int64_t LiveCostMicros(JobId job) = 0;         // 0 when it is over

  // On the worker's thread. kNotFound: the job was removed.
  virtual Result<TrialSight> Look(JobId job, const std::string& metric) = 0;
  virtual Result<std::optional<JobId>> FindKey(const TrialOrder& order) = 0;
  virtual LastWords Listen(JobId job) = 0;
};

}  // namespace athanor
