#include "record/jobs/job_summary.h"

#include "job/command.h"
#include "job/shown.h"

namespace athanor {
namespace {

constexpr size_t kListedCommand = 240;
constexpr size_t kListedCause = 480;

// Cut between characters; a list has no room for more, and the record has all of it.
std::string Shorten(std::string text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  text.resize(limit);
  return text + "…";
}

}  // namespace

JobSummary SummaryOf(const JobRecord& record) {
  JobSummary job;
  job.id = record.id;
  job.name = record.spec.name;
  job.experiment = record.spec.experiment;
  job.user = record.user;
  job.state = record.state;
  job.created = record.created;
  job.started = FirstStarted(record);
  job.ended = record.ended;
  job.cause_kind = record.cause.kind;
  job.cause_text = Shorten(record.cause.text, kListedCause);
  job.type = record.spec.resources.type;
  job.command = Shorten(CommandLine(record.spec), kListedCommand);
  job.attempts = static_cast<uint32_t>(record.attempts.size());
  job.cost_micros = CostMicros(record);
  job.simulated = record.simulated;
  return job;
}

}  // namespace athanor
