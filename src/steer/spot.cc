// The engine's timers for machines that are taken away: deliberate interruptions and the limit on
// waiting plus running.
#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "steer/attempts.h"
#include "steer/engine.h"

namespace athanor {

void Engine::ArmSpot(const JobRecord& record) {
  const auto& spot = record.spec.resources.spot;
  if (spot.use && spot.max_wait.count() > 0 && !waits_until_.contains(record.id)) {
    // The wall clock is read once; from here on the monotonic clock counts.
    const auto waited = std::max<int64_t>(parts_.clock.Wall().ms - record.created.ms, 0);
    const Millis until = parts_.clock.Monotonic() - Millis(waited) + spot.max_wait;
    waits_until_[record.id] = until;
    wait_ends_.emplace(until, record.id);
  }
  const auto after = PreemptAfter(record);
  const auto* attempt = record.current();
  if (!after || record.state != JobState::kRunning || attempt->interrupt ||
      std::exchange(attempts_[attempt->id].armed, true)) {
    return;
  }
  const auto ran = std::max<int64_t>(parts_.clock.Wall().ms - attempt->started.ms, 0);
  const Millis left = std::max(*after - Millis(ran), Millis(0));
  parts_.executor.After(left, [this, job = record.id, id = attempt->id] {
    const auto* live = Live(job);
    if (stopped_ || !live || live->state != JobState::kRunning || live->current()->id != id) return;
    Apply(job, InterruptAsked{{"preempted", "its machine was taken away (on purpose, by --preempt)",
                               "ath show " + ShellQuote(live->spec.name), ""},
                              "athanor",
                              live->spec.limits.stop_grace});
  });
}

void Engine::CheckWaits() {
  const auto now = parts_.clock.Monotonic();
  while (!wait_ends_.empty() && wait_ends_.begin()->first < now) {
    const JobId job = wait_ends_.begin()->second;
    wait_ends_.erase(wait_ends_.begin());
    const auto* live = Live(job);
    if (live && !live->spot_fell_back && !live->stop) Apply(job, WaitedTooLong{});
  }
}

}  // namespace athanor
