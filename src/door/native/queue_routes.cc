// The native door's queue: who waits, for what and since when, and what the machine is used for.
#include <cstdlib>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/text/format.h"
#include "base/text/json_writer.h"
#include "door/native/views.h"
#include "door/page/page_doors.h"
#include "door/queries.h"
#include "place/estimate.h"
#include "steer/queue_view.h"

namespace athanor {
namespace {

constexpr size_t kMostPlayed = 64;
constexpr uint64_t kUsualShown = 100;
constexpr uint64_t kMostShown = 1'000;

// Where a page of the line ends: the next one begins after it, whatever leaves or joins the line.
struct LinePlace {
  int32_t priority = 0;
  JobId job;

  static LinePlace Of(const JobRecord& record) { return {record.spec.priority, record.id}; }
  std::string ToString() const { return fmt::format("{}:{}", priority, job.ToString()); }
  static std::optional<LinePlace> Parse(std::string_view text) {
    LinePlace place;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, place.priority);
    if (read.ec != std::errc() || read.ptr == end || *read.ptr != ':') return std::nullopt;
    const auto id =
        JobId::Parse(std::string_view(read.ptr + 1, static_cast<size_t>(end - read.ptr - 1)));
    if (!id) return std::nullopt;
    place.job = *id;
    return place;
  }
  // As the queue takes them.
  bool IsBefore(const JobRecord& record) const {
    if (priority != record.spec.priority) return priority > record.spec.priority;
    return job < record.id;
  }
};

// A job that was taken off its machine waits since then.
int64_t WaitsSince(const JobRecord& record) {
  const auto* attempt = record.current();
  return attempt && attempt->ended.ms != 0 ? attempt->ended.ms : record.created.ms;
}

void WriteMachine(JsonWriter& json, const DoorContext& context,
                  const std::vector<const JobRecord*>& holding) {
  uint64_t cpus = 0;
  uint64_t memory = 0;
  uint64_t gpus = 0;
  for (const auto* record : holding) {
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

// When they start at the latest, as the queue itself sees the line; only by what is known about the
// end of each job.
std::map<JobId, WallTime> StartsOf(DoorContext& context, size_t most, WallTime& now) {
  auto line = context.engine.ViewLine(context.engine.backends().all().front(), most);
  for (size_t i = 0; i < line.waiting.size(); ++i) {
    line.view.waiting[i].hold_limit = LongestRun(*line.waiting[i]);
  }
  now = line.view.now;
  std::map<JobId, WallTime> starts;
  const auto latest = LatestStarts(line.view);
  for (size_t i = 0; i < latest.size(); ++i) {
    if (latest[i]) starts[line.view.waiting[i].id] = *latest[i];
  }
  return starts;
}

// A page of the line.
struct Page {
  std::vector<const JobRecord*> jobs;
  size_t before = 0;  // in the line, of the first
  bool more = false;
};

Page PageOf(const Engine& engine, const std::optional<LinePlace>& after, size_t limit) {
  Page page;
  engine.EachWaiting([&](const JobRecord& record) {
    if (after && !after->IsBefore(record)) {
      ++page.before;
      return true;
    }
    page.more = page.jobs.size() == limit;
    if (!page.more) page.jobs.push_back(&record);
    return !page.more;
  });
  return page;
}

void WriteWaiting(JsonWriter& json, const DoorContext& context, const JobRecord& record,
                  size_t position, const std::optional<Millis>& starts_in) {
  json.BeginObject();
  json.Key("job");
  json.Raw(SummaryView(context, record));
  json.Text("reason", record.cause.text);
  json.Int("since_ms", WaitsSince(record));
  json.Int("position", static_cast<int64_t>(position));
  json.Key("estimate_ms");
  if (starts_in) {
    json.Int(starts_in->count());
  } else {
    json.Raw("null");
  }
  json.EndObject();
}

// On the loop, which alone knows the line: a page at a time, however long it is.
void Queue(DoorContext& context, const Call& call) {
  const auto limit = WholeNumber(call.request, "limit");
  if (!limit) return call.Refuse(limit.error());
  std::optional<LinePlace> after;
  if (const auto text = call.request.Query("after")) {
    after = LinePlace::Parse(*text);
    if (!after) {
      return call.Refuse(Error{ErrorCode::kInvalid, "after is not a place in the line",
                               "give what `next` of the page before said"}
                             .Id("ATH-R0014"));
    }
  }
  const size_t most = std::clamp<uint64_t>(limit->value_or(kUsualShown), 1, kMostShown);
  const Page page = PageOf(context.engine, after, most);
  const auto holding = context.engine.Holding();
  // A line of hundreds is not played forward while others wait for the answer.
  const size_t waiting = context.engine.waiting_count();
  const bool played = waiting <= kMostPlayed && page.jobs.size() == waiting;
  WallTime now;
  const auto starts = played ? StartsOf(context, waiting, now) : std::map<JobId, WallTime>();
  std::string body;
  JsonWriter json(body);
  json.BeginObject();
  json.Key("waiting");
  json.BeginArray();
  for (size_t i = 0; i < page.jobs.size(); ++i) {
    std::optional<Millis> starts_in;
    if (const auto at = starts.find(page.jobs[i]->id); at != starts.end()) {
      starts_in = Millis(at->second.ms - now.ms);
    }
    WriteWaiting(json, context, *page.jobs[i], page.before + i + 1, starts_in);
  }
  json.EndArray();
  json.Int("matched", static_cast<int64_t>(waiting));
  if (page.more) json.Text("next", LinePlace::Of(*page.jobs.back()).ToString());
  json.Key("machine");
  WriteMachine(json, context, holding);
  json.EndObject();
  call.Json(200, std::move(body));
}

}  // namespace

std::vector<DoorRoute> QueueRoutes(DoorContext& context) {
  return {{"GET", "/api/v1/queue", "queue.show",
           [&context](const Call& call) { Queue(context, call); }}};
}

}  // namespace athanor
