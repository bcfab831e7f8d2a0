// The native door's streams: logs as bytes, and what happens as server-sent events.
#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "door/doors.h"
#include "door/hub.h"
#include "door/views.h"
#include "job/codec.h"
#include "net/sse.h"

namespace athanor {
namespace {

constexpr size_t kPiece = 256 << 10;
constexpr size_t kMostBacklog = 4 << 20;  // a reader this far behind waits for the network
constexpr Millis kMetricsPause{250};

struct LogFilter {
  std::optional<uint32_t> rank;
  bool setup = true;
  bool run = true;

  bool Passes(const LogEntry& entry) const {
    bool is_setup = entry.stream == LogStream::kSetup;
    if (is_setup ? !setup : !run) return false;
    return !rank || is_setup || entry.rank == *rank;
  }
};

LogFilter FilterOf(const Request& request) {
  LogFilter filter;
  auto phase = request.Query("phase").value_or("run");
  filter.setup = phase == "setup" || phase == "all";
  filter.run = phase == "run" || phase == "all";
  if (auto rank = request.Query("rank")) {
    filter.rank = static_cast<uint32_t>(std::strtoul(rank->c_str(), nullptr, 10));
  }
  return filter;
}

Result<LogCursor> StartOf(const DoorContext& context, JobId job, const Request& request) {
  std::string last(request.headers.Get("Last-Event-ID"));
  if (last.empty()) last = request.Query("cursor").value_or("");
  if (auto cursor = LogCursor::Parse(last)) return *cursor;
  if (auto tail = request.Query("tail")) {
    return context.logs.Tail(job, std::strtoull(tail->c_str(), nullptr, 10));
  }
  if (auto since = request.Query("since_ms")) {
    return context.logs.Since(job, std::strtoll(since->c_str(), nullptr, 10));
  }
  return LogCursor{};
}

// Sends the bytes there are now, piece by piece, as fast as the reader takes them.
class LogDownload : public std::enable_shared_from_this<LogDownload> {
 public:
  LogDownload(DoorContext& context, JobId job, LogFilter filter, LogCursor cursor, Stream stream)
      : context_(context), job_(job), filter_(filter), cursor_(cursor), stream_(std::move(stream)) {}

  void Go() {
    while (stream_.open()) {
      if (stream_.backlog() > kMostBacklog) {
        return stream_.OnDrained([self = shared_from_this()] { self->Go(); });
      }
      auto entries = context_.logs.Read(job_, cursor_, kPiece);
      if (!entries || entries->empty()) break;
      for (const auto& entry : *entries) {
        if (filter_.Passes(entry)) stream_.Write(entry.bytes);
      }
    }
    stream_.Close();
  }

 private:
  DoorContext& context_;
  JobId job_;
  LogFilter filter_;
  LogCursor cursor_;
  Stream stream_;
};

void Logs(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  auto cursor = StartOf(context, record->id, call.request);
  if (!cursor && cursor.error().code != ErrorCode::kNotFound) return call.Refuse(cursor.error());
  Response head;
  head.headers.Add("Content-Type", "application/octet-stream");
  head.headers.Add("X-Content-Type-Options", "nosniff");
  auto download = std::make_shared<LogDownload>(context, record->id, FilterOf(call.request),
                                                cursor ? *cursor : LogCursor{},
                                                call.responder.BeginStream(head));
  download->Go();
}

// One job, live: its log, states, numbers; ends when the job is over and all was sent.
class JobStream : public std::enable_shared_from_this<JobStream> {
 public:
  JobStream(DoorContext& context, JobId job, LogFilter filter, LogCursor cursor, Stream stream)
      : context_(context), job_(job), filter_(filter), cursor_(cursor), stream_(std::move(stream)) {}

  void Start(bool follow) {
    auto self = shared_from_this();
    listener_ = context_.hub.Listen(job_, [self](JobId, News news) { self->On(news); });
    stream_.OnClosed([self] {
      self->context_.hub.Forget(self->listener_);
      self->context_.loop.Cancel(self->timer_);
    });
    SendState();
    SendMetrics();
    SendLogs();
    EndIfOver();
    if (!follow) stream_.Close();
  }

 private:
  void On(News news) {
    switch (news) {
      case News::kState:
        SendLogs();
        SendState();
        EndIfOver();
        return;
      case News::kLog:
        return SendLogs();
      case News::kPoints:
        return Later();
      case News::kUsage:
        return SendUsage();
    }
  }

  void Event(std::string_view name, const Json& data, std::string id = {}) {
    SseEvent event;
    event.id = std::move(id);
    event.event = name;
    event.data = DumpJson(data);
    stream_.Write(FormatSse(event));
  }

  void SendLogs() {
    while (stream_.open()) {
      if (stream_.backlog() > kMostBacklog) {
        return stream_.OnDrained([self = shared_from_this()] {
          self->SendLogs();
          self->EndIfOver();
        });
      }
      auto entries = context_.logs.Read(job_, cursor_, kPiece);
      if (!entries || entries->empty()) break;
      for (const auto& entry : *entries) {
        if (!filter_.Passes(entry)) continue;
        Json data = Json::object();
        data["stream"] = std::string(NameOf(entry.stream));
        data["rank"] = entry.rank;
        data["attempt"] = entry.attempt;
        data["time"] = Rfc3339({entry.wall_ms});
        if (IsUtf8(entry.bytes)) {
          data["text"] = entry.bytes;
        } else {
          data["base64"] = Base64(entry.bytes);
        }
        Event("log", data, cursor_.ToString());
      }
    }
  }

  void SendState() {
    auto record = FindJob(context_, job_.ToString());
    if (!record) return;
    Json data = AcceptedView(*record);
    data["shown_state"] = ShownState(context_, *record);
    data["cause"] = ToJson(record->cause);
    Event("state", data);
  }

  void SendUsage() {
    const auto* stats = context_.hub.FindStats(job_);
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
    timer_ = context_.loop.After(kMetricsPause, [self = shared_from_this()] {
      self->timer_set_ = false;
      self->SendMetrics();
    });
  }

  void SendMetrics() {
    auto summaries = context_.series.Summaries(job_);
    if (!summaries || summaries->empty() || !stream_.open()) return;
    Json data = Json::object();
    data["metrics"] = MetricsView(*summaries);
    Event("metrics", data);
  }

  void EndIfOver() {
    auto record = FindJob(context_, job_.ToString());
    if (record && !IsTerminal(record->state)) return;
    if (stream_.backlog() > kMostBacklog) return;  // logs go on first
    context_.loop.Cancel(timer_);
    SendMetrics();
    if (record) Event("end", JobView(context_, *record));
    stream_.Close();
  }

  DoorContext& context_;
  JobId job_;
  LogFilter filter_;
  LogCursor cursor_;
  Stream stream_;
  Hub::Id listener_ = 0;
  Executor::TimerId timer_ = 0;
  bool timer_set_ = false;
};

Response SseHead() {
  Response head;
  head.headers.Add("Content-Type", "text/event-stream");
  head.headers.Add("Cache-Control", "no-store");
  head.headers.Add("X-Accel-Buffering", "no");
  return head;
}

void FollowJob(DoorContext& context, const Call& call) {
  auto record = FindJob(context, call.captures["job"]);
  if (!record) return call.Refuse(record.error());
  auto cursor = StartOf(context, record->id, call.request);
  if (!cursor && cursor.error().code != ErrorCode::kNotFound) return call.Refuse(cursor.error());
  std::make_shared<JobStream>(context, record->id, FilterOf(call.request),
                              cursor ? *cursor : LogCursor{}, call.responder.BeginStream(SseHead()))
      ->Start(call.request.Query("follow").value_or("true") == "true");
}

// Every job's events after a position, then as they come.
void FollowEvents(DoorContext& context, const Call& call) {
  struct Follower {
    uint64_t position = 0;
    Stream stream;
    Hub::Id listener = 0;
  };
  auto follower = std::make_shared<Follower>();
  std::string last(call.request.headers.Get("Last-Event-ID"));
  if (last.empty()) last = call.request.Query("after").value_or("");
  if (last.empty()) {
    auto newest = context.jobs.LastEventPosition();
    follower->position = newest ? *newest : 0;
  } else {
    follower->position = std::strtoull(last.c_str(), nullptr, 10);
  }
  bool follow = call.request.Query("follow").value_or("true") == "true";
  follower->stream = call.responder.BeginStream(SseHead());
  auto pump = [&context, follower] {
    while (follower->stream.open() && follower->stream.backlog() < kMostBacklog) {
      auto events = context.jobs.EventsAfter(follower->position, 200);
      if (!events || events->empty()) return;
      for (const auto& event : *events) {
        SseEvent out;
        out.id = std::to_string(follower->position);
        out.event = "event";
        out.data = DumpJson(ToJson(event));
        follower->stream.Write(FormatSse(out));
      }
    }
  };
  pump();
  if (!follow) return follower->stream.Close();
  follower->listener = context.hub.ListenAll([pump](JobId, News) { pump(); });
  follower->stream.OnClosed([&context, follower] { context.hub.Forget(follower->listener); });
}

}  // namespace

std::vector<DoorRoute> StreamRoutes(DoorContext& context) {
  return {
      {"GET", "/api/v1/jobs/{job}/logs", "jobs.logs",
       [&context](const Call& call) { Logs(context, call); }},
      {"GET", "/api/v1/jobs/{job}/stream", "jobs.stream",
       [&context](const Call& call) { FollowJob(context, call); }},
      {"GET", "/api/v1/events", "events.stream",
       [&context](const Call& call) { FollowEvents(context, call); }},
  };
}

}  // namespace athanor
