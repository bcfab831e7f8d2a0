// The native door's streams: logs as bytes, and what happens as server-sent events.
#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/doors.h"
#include "door/native/hosts_view.h"
#include "door/native/log_part.h"
#include "door/native/piece_feed.h"
#include "door/native/views.h"
#include "door/queries.h"
#include "job/codec.h"
#include "job/shown.h"
#include "net/http/sse.h"
#include "steer/hub.h"

namespace athanor {
namespace {

constexpr size_t kPiece = 256 << 10;
constexpr Millis kMetricsPause{250};

// A whole number from 0 up; nothing when it is not given.
Result<std::optional<int64_t>> NumberOf(const Request& request, const char* name) {
  const auto text = request.Query(name);
  if (!text) return std::optional<int64_t>();
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size() || number < 0) {
    return Fail(Error{ErrorCode::kInvalid, std::string(name) + " is not a whole number",
                      "give a whole number from 0, such as 10"}
                    .Why("got '" + Printable(std::string_view(*text).substr(0, 80)) + "'")
                    .Id("ATH-R0014"));
  }
  return std::optional(number);
}

// Where a reader begins, and how much of what comes then it does not want.
struct LogStart {
  LogCursor cursor;
  uint64_t skip_lines = 0;

  std::string_view Skip(std::string_view bytes) {
    while (skip_lines > 0 && !bytes.empty()) {
      auto end = bytes.find('\n');
      if (end == std::string_view::npos) return {};
      bytes.remove_prefix(end + 1);
      --skip_lines;
    }
    return bytes;
  }
};

// Lines after `cursor` that pass; one that is still open counts, too.
uint64_t CountLines(const DoorContext& context, JobId job, const LogPart& filter,
                    LogCursor cursor) {
  uint64_t lines = 0;
  bool open = false;
  for (;;) {
    auto entries = context.logs.Read(job, cursor, kPiece);
    if (!entries || entries->empty()) return lines + (open ? 1 : 0);
    for (const auto& entry : *entries) {
      if (!filter.Has(entry) || entry.bytes.empty()) continue;
      lines += static_cast<uint64_t>(std::count(entry.bytes.begin(), entry.bytes.end(), '\n'));
      open = entry.bytes.back() != '\n';
    }
  }
}

// The store counts the lines of all streams in whole chunks; here they are the reader's.
Result<LogStart> TailOf(const DoorContext& context, JobId job, const LogPart& filter,
                        uint64_t wanted) {
  for (uint64_t ask = wanted;; ask *= 4) {
    ATHANOR_TRY(auto cursor, context.logs.Tail(job, ask));
    auto lines = CountLines(context, job, filter, cursor);
    if (lines >= wanted || cursor.entry == 0) {
      return LogStart{cursor, lines > wanted ? lines - wanted : 0};
    }
  }
}

// A job that has printed nothing yet is read from its beginning.
Result<LogStart> StartOf(const DoorContext& context, JobId job, const LogPart& filter,
                         const Request& request) {
  std::string last(request.headers.Get("Last-Event-ID"));
  if (last.empty()) last = request.Query("cursor").value_or("");
  if (auto cursor = LogCursor::Parse(last)) return LogStart{*cursor};
  auto start = [&]() -> Result<LogStart> {
    ATHANOR_TRY(const auto tail, NumberOf(request, "tail"));
    if (tail) return TailOf(context, job, filter, static_cast<uint64_t>(*tail));
    ATHANOR_TRY(const auto since, NumberOf(request, "since_ms"));
    if (since) {
      ATHANOR_TRY(auto cursor, context.logs.Since(job, *since));
      return LogStart{cursor};
    }
    return LogStart{};
  }();
  if (!start && start.error().code == ErrorCode::kNotFound) return LogStart{};
  return start;
}

// Sends the bytes there are now.
class LogDownload final : public PieceFeed {
 public:
  LogDownload(DoorContext& context, JobId job, const LogPart& filter, LogStart start, Stream stream)
      : PieceFeed(context, std::move(stream)), job_(job), filter_(filter), start_(start) {}

 private:
  std::optional<std::string> ReadPiece() override {
    const auto entries = context().logs.Read(job_, start_.cursor, kPiece);
    if (!entries || entries->empty()) return std::nullopt;
    std::string bytes;
    for (const auto& entry : *entries) {
      if (filter_.Has(entry)) bytes += start_.Skip(entry.bytes);
    }
    return bytes;
  }
  void Dry() override { stream().Close(); }

  const JobId job_;
  const LogPart filter_;
  LogStart start_;  // the reader's
};

// What is read of which log, and from where.
struct LogReading {
  JobId job;
  LogPart part;
  bool several = false;  // lines of several ranks
  LogStart start;
};

// Finds the start on a reader's thread, and continues with `begin` on the loop's thread.
void WithStart(DoorContext& context, const Call& call,
               std::function<void(const LogReading&)> begin) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  auto part = LogPartIn(call.request, *record);
  if (!part) return call.Refuse(part.error());
  LogReading reading{record->id, *part, HasSeveralRanks(*part, *record), {}};
  OnReader(context, call, [&context, call, reading, begin = std::move(begin)]() mutable {
    auto start = StartOf(context, reading.job, reading.part, call.request);
    if (!start) return call.Refuse(start.error());
    reading.start = *start;
    context.loop.Post([begin, reading] { begin(reading); });
  });
}

void Logs(DoorContext& context, const Call& call) {
  WithStart(context, call, [&context, call](const LogReading& reading) {
    Response head;
    head.headers.Add("Content-Type", "application/octet-stream");
    head.headers.Add("X-Content-Type-Options", "nosniff");
    // For who wants to know whose line each is: the stream of the job says it.
    if (reading.several) head.headers.Add(std::string(kSeveralRanks), "several");
    std::make_shared<LogDownload>(context, reading.job, reading.part, reading.start,
                                  call.responder.BeginStream(head))
        ->Go();
  });
}

std::string FrameOf(std::string_view name, const Json& data, std::string id = {}) {
  SseEvent event;
  event.id = std::move(id);
  event.event = name;
  event.data = DumpJson(data);
  return FormatSse(event);
}

// What the attempt got that is not as it was asked for, or was not asked for.
void AddStart(const Attempt& attempt, Json& data) {
  if (!attempt.placement.auto_gpus.empty()) data["auto_gpus"] = attempt.placement.auto_gpus;
  if (!attempt.off.empty()) data["off"] = attempt.off;
}

// One job, live: its log, states, numbers; ends when the job is over and all was sent.
class JobStream final : public PieceFeed {
 public:
  JobStream(DoorContext& context, JobId job, const LogPart& filter, LogStart start, bool follow,
            Stream stream)
      : PieceFeed(context, std::move(stream)),
        job_(job),
        filter_(filter),
        start_(start),
        follow_(follow) {}

  void Start() {
    auto self = Self();
    if (const auto record = FindJob(context(), job_.ToString())) gang_ = IsGang(*record);
    listener_ = context().hub.Listen(job_, [self](JobId, News news) { self->On(news); });
    stream().OnClosed([self] {
      self->context().hub.Forget(self->listener_);
      self->context().loop.Cancel(self->timer_);
    });
    SendState();
    SendMetrics();
    Go();
  }

 private:
  std::shared_ptr<JobStream> Self() {
    return std::static_pointer_cast<JobStream>(shared_from_this());
  }

  void On(News news) {
    switch (news) {
      case News::kState:
        state_due_ = true;
        return Go();
      case News::kLog:
        return Go();
      case News::kPoints:
        return Later();
      case News::kUsage:
        return SendUsage();
    }
  }

  void Event(std::string_view name, const Json& data) { stream().Write(FrameOf(name, data)); }

  std::optional<std::string> ReadPiece() override {
    const auto entries = context().logs.Read(job_, start_.cursor, kPiece);
    if (!entries || entries->empty()) return std::nullopt;
    std::string frames;
    for (const auto& entry : *entries) {
      if (!filter_.Has(entry)) continue;
      auto bytes = start_.Skip(entry.bytes);
      if (bytes.empty()) continue;
      Json data = Json::object();
      data["stream"] = std::string(NameOf(entry.stream));
      data["rank"] = entry.rank;
      if (gang_) data["host"] = HostNameOf(entry.host);
      data["attempt"] = entry.attempt;
      data["time"] = Rfc3339({entry.wall_ms});
      if (IsUtf8(bytes)) {
        data["text"] = std::string(bytes);
      } else {
        data["base64"] = Base64(bytes);
      }
      frames += FrameOf("log", data, entry.after.ToString());
    }
    return frames;
  }

  // A state is sent after the log that came before it.
  void Dry() override {
    if (std::exchange(state_due_, false)) SendState();
    EndIfOver();
  }

  void SendState() {
    auto record = FindJob(context(), job_.ToString());
    if (!record) return;
    Json data = AcceptedView(context(), *record);
    data["cause"] = ToJson(ShownCause(*record, context().clock.Wall()));
    if (gang_) {
      data["nodes"] = record->spec.resources.nodes;
      data["processes"] = record->spec.resources.processes;
    }
    if (const auto* attempt = record->current()) AddStart(*attempt, data);
    Event("state", data);
  }

  void SendUsage() {
    const auto* stats = context().hub.FindStats(job_);
    if (!stats) return;
    Json data = Json::object();
    if (stats->usage) {
      data["cpu_percent"] = stats->usage->cpu_percent;
      data["memory_bytes"] = stats->usage->memory_bytes;
      data["held_ms"] = stats->usage->held_ms;
    }
    if (stats->progress) {
      data["done"] = stats->progress->done;
      data["total"] = stats->progress->total;
    }
    Event("usage", data);
  }

  // Numbers change with every step; a person's eye is served four times a second.
  void Later() {
    if (timer_set_) return;
    timer_set_ = true;
    timer_ = context().loop.After(kMetricsPause, [self = Self()] {
      self->timer_set_ = false;
      self->SendMetrics();
    });
  }

  void SendMetrics() {
    auto record = FindJob(context(), job_.ToString());
    if (record && stream().open()) SendNumbers(*record, false, [] {});
  }

  // The metrics, at the end with everything else, and then `then`.
  void SendNumbers(const JobRecord& record, bool end, std::function<void()> then) {
    std::optional<LiveStats> stats;
    if (const auto* known = context().hub.FindStats(job_)) stats = *known;
    const bool taken = context().readers.Submit([self = Self(), record, end,
                                                 stats = std::move(stats), then = std::move(then)] {
      const auto numbers = ReadNumbers(self->context(), record);
      std::string frames;
      if (!numbers.metrics.empty()) {
        frames += FrameOf("metrics", Json{{"metrics", MetricsView(numbers.metrics)}});
      }
      if (end) {
        frames +=
            FrameOf("end", JobView(self->context(), record, stats ? &*stats : nullptr, numbers));
      }
      self->context().loop.Post([self, then, frames = std::move(frames)] {
        if (!frames.empty()) self->stream().Write(frames);
        then();
      });
    });
    if (!taken) stream().Close();  // the server is stopping
  }

  void EndIfOver() {
    if (ending_) return;
    auto record = FindJob(context(), job_.ToString());
    const bool over = !record || IsTerminal(record->state);
    if (follow_ && !over) return;
    ending_ = true;
    context().loop.Cancel(timer_);
    if (!record) return stream().Close();
    SendNumbers(*record, over, [self = Self()] { self->stream().Close(); });
  }

  const JobId job_;
  const LogPart filter_;
  LogStart start_;  // the reader's
  const bool follow_;
  bool gang_ = false;  // set before the first piece is read
  Hub::Id listener_ = 0;
  Executor::TimerId timer_ = 0;
  bool timer_set_ = false;
  bool state_due_ = false;
  bool ending_ = false;
};

Response SseHead() {
  Response head;
  head.headers.Add("Content-Type", "text/event-stream");
  head.headers.Add("Cache-Control", "no-store");
  head.headers.Add("X-Accel-Buffering", "no");
  return head;
}

void FollowJob(DoorContext& context, const Call& call) {
  WithStart(context, call, [&context, call](const LogReading& reading) {
    const bool follow = call.request.Query("follow").value_or("true") == "true";
    std::make_shared<JobStream>(context, reading.job, reading.part, reading.start, follow,
                                call.responder.BeginStream(SseHead()))
        ->Start();
  });
}

// Every job's events after a position, then as they come.
class EventStream final : public PieceFeed {
 public:
  EventStream(DoorContext& context, uint64_t position, bool follow, Stream stream)
      : PieceFeed(context, std::move(stream)), position_(position), follow_(follow) {}

  void Start() {
    auto self = shared_from_this();
    listener_ = context().hub.ListenAll([self](JobId, News news) {
      if (news == News::kState) self->Go();
    });
    stream().OnClosed([this, self] { context().hub.Forget(listener_); });
    Go();
  }

 private:
  std::optional<std::string> ReadPiece() override {
    std::vector<uint64_t> positions;
    const auto events = context().jobs.EventsAfter(position_, 200, &positions);
    if (!events || events->empty()) return std::nullopt;
    std::string frames;
    for (size_t i = 0; i < events->size(); ++i) {
      frames += FrameOf("event", ToJson((*events)[i]), std::to_string(positions[i]));
    }
    return frames;
  }
  void Dry() override {
    if (!follow_) stream().Close();
  }

  uint64_t position_;  // the reader's
  const bool follow_;
  Hub::Id listener_ = 0;
};

void FollowEvents(DoorContext& context, const Call& call) {
  std::string last(call.request.headers.Get("Last-Event-ID"));
  if (last.empty()) last = call.request.Query("after").value_or("");
  auto newest = context.jobs.LastEventPosition();
  if (!newest) return call.Refuse(newest.error());
  auto position = last.empty() ? *newest : std::strtoull(last.c_str(), nullptr, 10);
  std::make_shared<EventStream>(context, position,
                                call.request.Query("follow").value_or("true") == "true",
                                call.responder.BeginStream(SseHead()))
      ->Start();
}

}  // namespace

std::vector<DoorRoute> StreamRoutes(DoorContext& context) {
  return {
      Native("jobs.logs", [&context](const Call& call) { Logs(context, call); }),
      Native("jobs.stream", [&context](const Call& call) { FollowJob(context, call); }),
      Native("events.stream", [&context](const Call& call) { FollowEvents(context, call); }),
  };
}

}  // namespace athanor
