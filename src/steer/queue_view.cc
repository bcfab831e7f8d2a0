#include "steer/queue_view.h"

#include "steer/attempts.h"

namespace athanor {

Millis LongestRun(const JobRecord& record) {
  const auto& limits = record.spec.limits;
  return limits.max_runtime.count() > 0 ? limits.max_runtime + limits.stop_grace : Millis(0);
}

RunningJob ViewOfRunning(const JobRecord& record) {
  const auto& attempt = *record.current();
  RunningJob job{record.id, record.spec.name, attempt.placement, std::nullopt};
  const auto longest = LongestRun(record);
  if (longest.count() > 0 && attempt.started.ms != 0) {
    job.ends_by = WallTime{attempt.started.ms + longest.count()};
  }
  return job;
}

Result<WaitingJob> ViewOfWaiting(const JobRecord& record, const Catalogue& catalogue,
                                 const Inventory& inventory, bool simulate) {
  const auto resolve = [&](const ResourceSpec& wanted) {
    return Resolve(wanted, catalogue, inventory, simulate);
  };
  WaitingJob job;
  ATHANOR_TRY(job.need, record.attempts.empty() ? resolve(record.spec.resources)
                                                : resolve(NextResources(record)));
  job.id = record.id;
  job.name = record.spec.name;
  job.priority = record.spec.priority;
  job.created = record.created;
  job.attempts = static_cast<uint32_t>(record.attempts.size());
  return job;
}

}  // namespace athanor
