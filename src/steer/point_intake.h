// PointIntake is the only way by which points of metrics enter the series store of a server: what
// agents report, what MLflow clients log inside and outside of jobs, and what is imported. So
// whoever acts on points (early stopping of trials, live charts, the summaries of runs) is told
// about all of them, and a new door cannot forget one.
//
// It decides nothing about who may log, and reads no request: doors do. What a rule of a job, the
// hang detection and the choice of the best checkpoint see is what the job itself logs, on its own
// machine, before it is sent (run/rules/watcher.h).
//
// Threads: the server's loop. What the store says about errors holds here, too.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "job/ids.h"
#include "job/point.h"

namespace athanor {

class SeriesStore;

class PointIntake {
 public:
  struct Parts {
    SeriesStore& series;
    // Calls `store` once, at once. What is read of the run meanwhile may be out of date, and has to
    // be known as such (RunBook::Storing).
    std::function<void(JobId, const std::function<void()>& store)> storing;
    std::function<void(JobId)> came;  // the run has new points
  };
  explicit PointIntake(Parts parts) : parts_(std::move(parts)) {}

  // How many were new. A sender that numbers its points may send them again.
  Result<size_t> Take(JobId run, const PointBatch& batch);
  // The same for a sender that does not: every point is new.
  Result<size_t> Add(JobId run, PointBatch batch);
  // The same for many at once, as record/series/series_frames.h makes them.
  Result<size_t> TakeFrames(JobId run, std::string_view frames);

 private:
  Result<size_t> Stored(JobId run, const std::function<Result<size_t>()>& append);

  Parts parts_;
};

}  // namespace athanor
