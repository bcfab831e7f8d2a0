#include "door/context.h"

namespace athanor {

Result<JobRecord> FindJob(const DoorContext& context, std::string_view reference) {
  ATHANOR_TRY(auto id, context.jobs.Resolve(reference));
  // Memory is newer than the store by what is being committed; an end is reported only when it is
  // stored.
  const auto* live = context.engine.Live(id);
  if (live && !IsTerminal(live->state)) return *live;
  return context.jobs.Find(id);
}

Resumes ResumesOf(const JobRecord& record) {
  Resumes resumes;
  for (const auto& attempt : record.attempts) {
    if (attempt.resumed_step) resumes[attempt.number] = *attempt.resumed_step;
  }
  return resumes;
}

std::optional<JobId> JobNowIn(const DoorContext& context, AttemptId attempt) {
  const auto job = context.engine.JobOf(attempt);
  const auto* live = job ? context.engine.Live(*job) : nullptr;
  const auto* current = live ? live->current() : nullptr;
  const bool now = current && current->id == attempt && current->ended.ms == 0;
  return now ? job : std::nullopt;
}

}  // namespace athanor
