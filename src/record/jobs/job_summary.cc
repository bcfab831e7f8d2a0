#include "record/jobs/job_summary.h"

#include <algorithm>

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

std::string TypeText(const ResourceSpec& resources) {
  if (resources.ranks() == 1) return resources.type;
  const auto ranks = std::to_string(resources.nodes) + "x" + std::to_string(resources.processes);
  return resources.type.empty() ? ranks : ranks + " " + resources.type;
}

}  // namespace

RanksAndType PartsOfType(std::string_view type) {
  const auto digits = [&type](size_t from) {
    const size_t end = std::min(type.find_first_not_of("0123456789", from), type.size());
    return end > from ? end : std::string_view::npos;
  };
  const size_t x = digits(0);
  if (x == std::string_view::npos || x >= type.size() || type[x] != 'x') return {{}, type};
  const size_t end = digits(x + 1);
  if (end == std::string_view::npos || (end < type.size() && type[end] != ' ')) return {{}, type};
  return {type.substr(0, end), type.substr(std::min(end + 1, type.size()))};
}

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
  job.type = TypeText(record.spec.resources);
  job.command = Shorten(CommandLine(record.spec), kListedCommand);
  job.attempts = static_cast<uint32_t>(record.attempts.size());
  job.cost_micros = CostMicros(record);
  job.simulated = record.simulated;
  return job;
}

}  // namespace athanor
