// The native door's queue: who waits, for what and since when, and what the machine is used for.
#include <cstdlib>

#include <algorithm>

#include "base/json_writer.h"
#include "door/page/page_doors.h"
#include "door/views.h"
#include "place/estimate.h"
#include "place/need.h"
#include "steer/attempts.h"

namespace athanor {
namespace {

constexpr size_t kMostPlayed = 64;

// As the queue takes them.
bool Before(const JobRecord* a, const JobRecord* b) {
  if (a->spec.priority != b->spec.priority) return a->spec.priority > b->spec.priority;
  return a->id < b->id;
}

// A job that was taken off its machine waits since then.
int64_t WaitsSince(const JobRecord& record) {
  const auto* attempt = record.current();
  return attempt && attempt->ended.ms != 0 ? attempt->ended.ms : record.created.ms;
}

void WriteMachine(JsonWriter& json, const DoorContext& context,
                  const std::vector<const JobRecord*>& live) {
  uint64_t cpus = 0;
  uint64_t memory = 0;
  uint64_t gpus = 0;
  for (const auto* record : live) {
    if (!HoldsRoom(record->state)) continue;
    const auto& placement = record->current()->placement;
    cpus += placement.cpu_millis;
    memory += placement.memory_bytes;
    gpus += placement.gpus.size();
  }
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 0;
  json.BeginObject();
  json.Text("host", context.inventory.host);
  json.Double("cpus", context.inventory.cpu_millis / 1000.0);
  json.Double("cpus_used", static_cast<double>(cpus) / 1000.0);
  json.Int("memory", static_cast<int64_t>(context.inventory.memory_bytes));
  json.Int("memory_used", static_cast<int64_t>(memory));
  json.Int("gpus", context.inventory.gpus);
  json.Int("gpus_used", static_cast<int64_t>(gpus));
  json.Double("load", load);
  json.EndObject();
}

// The queue as it will be played forward: what is known of everybody's end.
QueueView ViewOf(const DoorContext& context, const std::vector<const JobRecord*>& live,
                 const std::vector<const JobRecord*>& waiting) {
  QueueView view;
  view.inventory = context.inventory;
  view.now = context.clock.Wall();
  const auto longest = [](const JobRecord& record) {
    const auto& limits = record.spec.limits;
    return limits.max_runtime.count() > 0 ? limits.max_runtime + limits.stop_grace : Millis(0);
  };
  for (const auto* record : live) {
    if (!HoldsRoom(record->state)) continue;
    RunningJob job{record->id, record->spec.name, record->current()->placement, std::nullopt};
    const auto started = record->current()->started;
    if (longest(*record).count() > 0 && started.ms != 0) {
      job.ends_by = WallTime{started.ms + longest(*record).count()};
    }
    view.running.push_back(std::move(job));
  }
  for (const auto* record : waiting) {
    auto need = Resolve(NextResources(*record), context.catalogue, context.inventory,
                        context.info.simulate);
    WaitingJob job;
    job.id = record->id;
    job.priority = record->spec.priority;
    job.created = record->created;
    if (need) job.need = *need;
    job.hold_limit = longest(*record);
    view.waiting.push_back(std::move(job));
  }
  return view;
}

void Queue(DoorContext& context, const Call& call) {
  const auto live = context.engine.AllLive();
  std::vector<const JobRecord*> waiting;
  for (const auto* record : live) {
    if (record->state == JobState::kQueued) waiting.push_back(record);
  }
  std::sort(waiting.begin(), waiting.end(), Before);
  // A line of thousands is not played forward while others wait for the answer.
  std::vector<std::optional<WallTime>> starts(waiting.size());
  const auto view = ViewOf(context, live, waiting);
  if (waiting.size() <= kMostPlayed) starts = LatestStarts(view);
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("waiting");
  json.BeginArray();
  for (size_t i = 0; i < waiting.size(); ++i) {
    const JobRecord& record = *waiting[i];
    json.BeginObject();
    json.Key("job");
    json.Raw(SummaryView(context, record));
    json.Text("reason", record.cause.text);
    json.Int("since_ms", WaitsSince(record));
    json.Int("position", static_cast<int64_t>(i) + 1);
    json.Key("estimate_ms");
    if (starts[i]) {
      json.Int(starts[i]->ms - view.now.ms);
    } else {
      json.Raw("null");
    }
    json.EndObject();
  }
  json.EndArray();
  json.Key("machine");
  WriteMachine(json, context, live);
  json.EndObject();
  call.Json(200, std::move(body));
}

}  // namespace

std::vector<DoorRoute> QueueRoutes(DoorContext& context) {
  return {{"GET", "/api/v1/queue", "queue.show",
           [&context](const Call& call) { Queue(context, call); }}};
}

}  // namespace athanor
