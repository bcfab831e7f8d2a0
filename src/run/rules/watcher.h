// The Watcher evaluates what the agent sees: rules on metrics, and whether the script hangs. It
// gets points and samples as they arrive, and answers with actions. It starts no process and sends
// nothing.
//
// Scripts often log one value in several ways: with athanor.log, with MLflow, to an event file, and
// by printing it. Of each name, only the best of these sources counts, so that no rule sees a point
// twice.
//
// Threads: every call is safe from any thread; callbacks come on the caller's, without a lock
// held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/exec/clock.h"
#include "base/exec/mutex.h"
#include "link/plan.h"
#include "link/wire.h"
#include "watch/hang/hang_watch.h"
#include "watch/rules/rule_set.h"

namespace athanor {

class Watcher {
 public:
  struct Actions {
    std::function<void(const Firing&)> fired;  // report it
    std::function<void(const Cause&)> stop;    // end the script, with its grace
    std::function<void(const Hang&)> hung;     // take stacks, then as limits.hang_action says
  };
  Watcher(const AttemptPlan& plan, const Clock& clock, Actions actions);

  void OnPoints(const PointBatch& batch);
  void OnOutput(uint64_t bytes);
  // About once a second while the script runs. While it is `held_up` by a full disk, no time counts
  // for rules and hangs.
  void Tick(uint64_t cpu_ns, bool held_up);

  std::optional<int64_t> last_step() const;  // the newest step of any metric
  // Of checkpoints.keep.metric, the last at or before the step; this attempt's only.
  std::optional<double> ValueAt(int64_t step) const;

 private:
  void See(const PointBatch& batch, const Point& point, std::vector<Firing>& firings)
      REQUIRES(mutex_);
  void Act(const std::vector<Firing>& firings);
  Millis Watched() const REQUIRES(mutex_) { return clock_.Monotonic() - held_up_; }

  const AttemptPlan& plan_;
  const Clock& clock_;
  Actions actions_;
  mutable Mutex mutex_;
  std::optional<RuleSet> rules_ GUARDED_BY(mutex_);
  HangWatch hang_ GUARDED_BY(mutex_);
  Millis held_up_ GUARDED_BY(mutex_){0};                    // time that does not count
  std::optional<Millis> held_up_since_ GUARDED_BY(mutex_);  // not added to it yet
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t points_ GUARDED_BY(mutex_) = 0;
  std::optional<int64_t> step_ GUARDED_BY(mutex_);
  std::map<int64_t, double> values_ GUARDED_BY(mutex_);  // of keep.metric by step
  struct Name {
    int source = 0;      // the best that logged it; a lower one is better
    bool began = false;  // MLflow logged it at step 0
  };
  std::map<std::string, Name, std::less<>> names_ GUARDED_BY(mutex_);
};

}  // namespace athanor
