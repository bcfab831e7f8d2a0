// What a tuning job does next, from what is known about it: pure. The controller stores the
// resulting events before it acts, and asks again after each one, so that a restart needs only the
// journal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "job/record.h"
#include "study/record.h"

namespace athanor {

inline constexpr uint32_t kMostLosses = 10;  // of one trial, before the study gives up

struct Plan {
  std::optional<StudyEvent> event;  // to be stored now; then plan again
  int64_t ask = 0;                  // that many new trials
  std::vector<int64_t> submit;      // asked for, without a job
  std::vector<int64_t> stop;        // running, and not to continue
};

// `spent_micros` is what the trials that run have cost so far; `promotable` is the trial that may
// continue from its rung, if there is one.
Plan Decide(const StudyRecord& record, int64_t spent_micros, WallTime now,
            std::optional<int64_t> promotable = std::nullopt);

// How a trial's job ended, according to the job.
struct TrialEnd {
  JobState state = JobState::kCompleted;
  Cause cause;
  std::optional<double> value;  // of the objective; NaN counts as reported
  std::optional<int64_t> step;
  int64_t cost_micros = 0;
  int64_t held_ms = 0;
};
// What that means for trial `number`, which is running: done, failed, stopped, paused, or lost by
// the platform and to be run again.
StudyEvent JudgeEnd(const StudyRecord& record, int64_t number, const TrialEnd& end, WallTime now);
// Whether a trial that ended like this, the first to end, shows that the objective is never
// reported.
bool NeverReported(const StudyRecord& record, const StudyEvent& ended);

// Whether the best has stopped getting better: the last third of the trials (ten at least) moved it
// by no more than a hundredth of the distance between it and the median. Not before 20 values. Our
// rule; the median makes it independent of the unit and of a few very bad trials.
bool Converged(const StudyRecord& record);

// Decides early stops from reports in the order of the journal; the same reports give the same
// verdicts.
class Referee {
 public:
  explicit Referee(const StudySpec& spec);
  ~Referee();
  Referee(Referee&&) noexcept;
  Referee& operator=(Referee&&) noexcept;

  bool looks() const { return spec_.early.rule != EarlyStopSpec::Rule::kNone; }
  // The reason to stop the trial, or to pause it (CauseKind::kTrialPaused), if there is one.
  std::optional<Cause> Report(int64_t trial, const tune::CurvePoint& point);
  // The paused trial that continues next; the event of its promotion must then be replayed.
  std::optional<int64_t> Promotable() const;
  void Ended(int64_t trial, TrialState outcome, std::optional<double> value);
  // Applies an event of the journal that was decided before.
  void Replay(const StudyEvent& event);

 private:
  struct Parts;
  StudySpec spec_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace athanor
