// The one stream of a browser: jobs and runs as they change. News is encoded once for all
// listeners, so that a listener costs its connection and little more.
#include <algorithm>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/io/files.h"
#include "base/text/json_writer.h"
#include "base/text/text.h"
#include "door/native/views.h"
#include "door/page/page_doors.h"
#include "net/http/sse.h"
#include "steer/hub.h"
#include "steer/live_news.h"

namespace athanor {
namespace {

constexpr Millis kStatesAfter{50};  // changes that come together are sent together
constexpr Millis kNumbersEvery{1000};
constexpr Millis kCommentEvery{15'000};
constexpr size_t kMostBehind = 64 << 10;  // bytes that one listener may have waiting
constexpr size_t kMostJobs = 500;         // in one turn; beyond, a page reads its list again
constexpr size_t kMostMetrics = 1000;     // in one frame
constexpr size_t kMostRuns = 256;         // for which it is known what was sent

class LiveFeed : public std::enable_shared_from_this<LiveFeed> {
 public:
  explicit LiveFeed(DoorContext& context) : context_(context), news_(RandomHex(6)) {}

  void Start() {
    context_.hub.ListenNews([weak = weak_from_this()](JobId id, News news) {
      if (auto self = weak.lock()) self->On(id, news);
    });
  }

  void Join(Stream stream, const std::string& last) {
    if (readers_.empty()) CommentLater();
    readers_.push_back(std::make_shared<Reader>(Reader{stream, false}));
    const auto reader = readers_.back();
    stream.OnClosed([weak = weak_from_this(), reader] {
      if (auto self = weak.lock()) self->readers_.remove(reader);
    });
    std::optional<LiveNews::Batch> missed;
    if (!last.empty()) missed = news_.Since(last);
    const bool gap = !last.empty() && (!missed || missed->jobs.size() > kMostJobs);
    stream.Write(Hello(gap));
    if (!missed || gap) return;
    stream.Write(JobFrames(missed->jobs) + LogFrames(missed->logs));
    // All of their numbers: which of them it knows is not known here.
    RunFrames(missed->runs, true,
              [reader](const std::string& frames) { reader->stream.Write(frames); });
  }

 private:
  struct Reader {
    Stream stream;
    bool behind = false;
  };
  using Counts = std::unordered_map<uint32_t, uint64_t>;  // of points, by metric
  using Send = std::function<void(const std::string&)>;

  void On(JobId id, News news) {
    news_.Note(id, news);
    if (news == News::kState) {
      TurnAfter(kStatesAfter);
    } else {
      TurnAfter(std::max(kStatesAfter, numbers_at_ + kNumbersEvery - context_.clock.Monotonic()));
    }
  }

  void TurnAfter(Millis delay) {
    const Millis at = context_.clock.Monotonic() + delay;
    if (turn_at_ && *turn_at_ <= at) return;
    if (turn_at_) context_.loop.Cancel(timer_);
    turn_at_ = at;
    timer_ = context_.loop.After(delay, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Turn();
    });
  }

  void Turn() {
    turn_at_.reset();
    const Millis now = context_.clock.Monotonic();
    const bool numbers = news_.HasNumbers() && !reading_ && now - numbers_at_ >= kNumbersEvery;
    if (numbers) numbers_at_ = now;
    const auto batch = news_.Take(numbers);
    if (news_.HasNumbers()) {
      TurnAfter(std::max(kStatesAfter, numbers_at_ + kNumbersEvery - now));
    }
    if (readers_.empty()) {
      counts_.clear();
      return;
    }
    Tell(batch.jobs.size() > kMostJobs ? Hello(true) : JobFrames(batch.jobs));
    Tell(LogFrames(batch.logs));
    RunFrames(batch.runs, false, [weak = weak_from_this()](const std::string& frames) {
      if (auto self = weak.lock()) self->Tell(frames);
    });
  }

  void Tell(const std::string& frames) {
    if (frames.empty()) return;
    const auto readers = readers_;  // one that is cut leaves the list
    for (const auto& reader : readers) {
      if (reader->behind) continue;
      if (reader->stream.backlog() > kMostBehind) {
        // It misses news until its network has accepted the rest, and is told so.
        reader->behind = true;
        reader->stream.OnDrained([weak = weak_from_this(), reader] {
          reader->behind = false;
          if (auto self = weak.lock()) reader->stream.Write(self->Hello(true));
        });
        continue;
      }
      reader->stream.Write(frames);
    }
  }

  std::string Frame(std::string_view name, std::string data) const {
    return FormatSse({news_.Position(), std::string(name), std::move(data)});
  }

  std::string Hello(bool gap) const {
    std::string data;
    JsonWriter json(data);
    json.BeginObject();
    json.Text("server", context_.info.version);
    json.Int("at_ms", context_.clock.Wall().ms);
    if (gap) {
      json.Key("gap");
      json.Bool(true);
    }
    json.EndObject();
    return Frame("hello", std::move(data));
  }

  std::string JobFrames(const std::set<JobId>& jobs) const {
    std::string frames;
    for (const JobId id : jobs) {
      const auto record = FindJob(context_, id.ToString());
      if (!record) continue;
      std::string data;
      JsonWriter json(data);
      json.BeginObject();
      json.Key("job");
      json.Raw(SummaryView(context_, *record));
      const auto* stats = context_.hub.FindStats(id);
      if (stats && stats->usage) {
        json.Key("usage");
        json.BeginObject();
        json.Double("cpu_percent", stats->usage->cpu_percent);
        json.Int("memory_bytes", static_cast<int64_t>(stats->usage->memory_bytes));
        json.EndObject();
      }
      if (stats && stats->progress) {
        json.Key("progress");
        json.BeginObject();
        json.Double("done", static_cast<double>(stats->progress->done));
        json.Double("total", static_cast<double>(stats->progress->total));
        json.EndObject();
      }
      json.EndObject();
      frames += Frame("job", std::move(data));
    }
    return frames;
  }

  std::string LogFrames(const std::set<JobId>& jobs) const {
    std::string frames;
    for (const JobId id : jobs) frames += Frame("log", "{\"job\":\"" + id.ToString() + "\"}");
    return frames;
  }

  // Summaries may have to be read: not on the loop's thread. `send` is called there.
  void RunFrames(const std::set<JobId>& runs, bool whole, Send send) {
    if (runs.empty()) return;
    auto seen = std::make_shared<std::vector<std::pair<JobId, Counts>>>();
    for (const JobId id : runs) {
      const auto at = counts_.find(id);
      seen->emplace_back(id, whole || at == counts_.end() ? Counts() : at->second);
    }
    const bool taken =
        context_.readers.Submit([weak = weak_from_this(), &context = context_, seen,
                                 position = news_.Position(), whole, send = std::move(send)] {
          std::string frames;
          for (auto& [id, counts] : *seen) frames += RunFrame(context, id, counts, position);
          context.loop.Post([weak, seen, frames = std::move(frames), whole, send] {
            auto self = weak.lock();
            if (!self) return;
            if (!whole) self->Told(std::move(*seen));
            send(frames);
          });
        });
    if (taken && !whole) reading_ = true;  // not taken: the server is stopping
  }

  void Told(std::vector<std::pair<JobId, Counts>> runs) {
    reading_ = false;
    if (counts_.size() > kMostRuns) counts_.clear();
    for (auto& [id, counts] : runs) counts_[id] = std::move(counts);
  }

  // Of a run the metrics that have other points than `counts` says, which is brought up to date.
  static std::string RunFrame(const DoorContext& context, JobId id, Counts& counts,
                              const std::string& position) {
    std::string data;
    context.runs.Look({id}, [&](const RunEntry& run) {
      JsonWriter json(data);
      json.BeginObject();
      json.Text("run", id.ToString());
      json.Text("status", NameOf(run.status));
      json.Key("metrics");
      json.BeginArray();
      size_t told = 0;
      for (const auto& metric : run.metrics) {
        auto [known, fresh] = counts.try_emplace(metric.key, 0);
        if ((!fresh && known->second == metric.count) || ++told > kMostMetrics) continue;
        known->second = metric.count;
        json.BeginObject();
        json.Text("name", context.runs.KeyName(metric.key));
        json.Double("last", metric.last);
        json.Int("step", metric.step);
        json.Int("count", static_cast<int64_t>(metric.count));
        json.EndObject();
      }
      json.EndArray();
      json.EndObject();
    });
    return data.empty() ? "" : FormatSse({position, "run", std::move(data)});
  }

  void CommentLater() {
    context_.loop.After(kCommentEvery, [weak = weak_from_this()] {
      auto self = weak.lock();
      if (!self || self->readers_.empty()) return;
      for (const auto& reader : self->readers_) reader->stream.Write(SseComment("alive"));
      self->CommentLater();
    });
  }

  DoorContext& context_;
  LiveNews news_;
  std::list<std::shared_ptr<Reader>> readers_;  // shared with what waits for their network
  std::map<JobId, Counts> counts_;              // of what was sent
  bool reading_ = false;                        // summaries; their frames go out in order
  Millis numbers_at_{0};
  std::optional<Millis> turn_at_;
  Executor::TimerId timer_ = 0;
};

}  // namespace

std::vector<DoorRoute> LiveRoutes(DoorContext& context) {
  auto feed = std::make_shared<LiveFeed>(context);  // belongs to its route; timers only look
  feed->Start();
  return {Native("live.stream", [feed](const Call& call) {
    Response head;
    head.headers.Add("Content-Type", "text/event-stream");
    head.headers.Add("Cache-Control", "no-store");
    head.headers.Add("X-Accel-Buffering", "no");
    std::string last(call.request.headers.Get("Last-Event-ID"));
    if (last.empty()) last = call.request.Query("after").value_or("");
    feed->Join(call.responder.BeginStream(head), last);
  })};
}

}  // namespace athanor
