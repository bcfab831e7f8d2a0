#include "run/ship/shipper.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <random>
#include <set>
#include <thread>

#include "base/exec/mutex.h"
#include "base/text/text.h"
#include "link/server_line.h"
#include "run/ship/exit_gate.h"
#include "run/ship/log_follower.h"
#include "run/ship/point_quota.h"
#include "watch/progress.h"
#include "watch/scalars/regex_metrics.h"

namespace athanor {
namespace {

constexpr size_t kReadAhead = 1 << 20;   // scrubbed bytes of a stream that may wait
constexpr size_t kMostPoints = 20'000;   // in one batch; more wait in the spool
constexpr size_t kLookAhead = 64 << 20;  // bytes of a log that are looked at in one go
constexpr Millis kAwayTick{250};         // between looks while the server is away
constexpr size_t kSpareSegments = 8;     // about 100,000 points
constexpr size_t kTailBytes = 64 << 10;
constexpr Millis kPatience{60};  // before an unfinished line is shown
constexpr Millis kTick{15};
constexpr Millis kIdleTick{40};
constexpr Millis kUsageEvery{1'000};
// A script that prints this much between two reads prints faster than anyone can follow: the rest
// waits a little in the file, so that reading does not slow the script down.
constexpr uint64_t kFlood = 128 << 10;
constexpr int kFloodRest = 4;  // times as long as a look took
constexpr Millis kLongestRest{400};
constexpr uint64_t kFloodBacklog = 64 << 20;  // not so much, though
// Regex points share a rank with spool points; a stream is a channel of its own. The same for
// guesses: the store recognises them by their channels, and leaves them out if a client logs the
// name.

void KeepTail(std::string& tail, std::string_view bytes) {
  tail.append(bytes);
  if (tail.size() > 2 * kTailBytes) tail.erase(0, tail.size() - kTailBytes);
}

// Processor time of this thread.
Millis OwnTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Millis(now.tv_sec * 1'000 + now.tv_nsec / 1'000'000);
}

PointBatch PointsOf(const SpoolBatch& batch, uint32_t rank) {
  PointBatch points;
  points.rank = rank;
  points.channel = batch.serial;
  for (const auto& point : batch.points) {
    points.items.push_back(
        {point.seq, {std::string(point.name), point.step, point.wall_ns, point.value}});
  }
  return points;
}

}  // namespace

struct Shipper::Parts {
  explicit Parts(Options o)
      : options(std::move(o)),
        gate(options.secrets),
        pauses(options.stranger_pause),
        jitter(std::random_device{}()) {
    // The expressions were checked at submit; if one fails here, only that one is lost.
    if (auto made = RegexMetrics::Make(options.plan.spec.metrics))
      metrics.emplace(std::move(*made));
  }

  struct Stream {
    uint32_t rank = 0;
    LogStream stream = LogStream::kStdout;
    std::unique_ptr<LogFollower> follower;
    std::optional<RegexMetrics> ahead;  // reads what LookAhead shows
  };
  struct Spool {
    uint32_t rank = 0;
    HeldFolder dir;
    SpoolSegments segments;
    ControlPage control;
    bool spare = false;
  };

  void Loop();
  bool Turn();                               // true: something was there
  Millis RestAfter(Millis took, bool busy);  // until the next turn
  bool Post(std::vector<ReportFrame> frames, size_t controls);
  void SetControlPages() REQUIRES(mutex);
  void Gather(bool all);
  void ReadSpools();
  void LookAheadInSpools();
  bool behind() const REQUIRES(mutex) { return looks_done < looks_wanted; }
  void TellAboutTooManyPoints(bool held_back);
  void LookAhead();
  void LookAheadIn(Stream& stream);
  void See(const SpoolBatch& batch, const PointBatch& points);
  void ReadEvents(bool all);
  void AddSpareSegments();
  void Handle(const std::vector<ReplyFrame>& replies);
  void Seen(const Stream& stream, std::string_view bytes, bool shown);
  void AddPoints(std::vector<MetricPoint> found, bool shown);
  // A guess that is not needed. If it is sent anyway, the store leaves it out.
  bool IsIdle(const MetricPoint& point) const {
    return point.guessed && (sdk_used || event_names.contains(point.name));
  }
  void WaitWhileAway(Millis pause);
  void WarnUnmatched();
  HelloFrame Hello() const;
  bool AllSent();

  Options options;
  ExitGate gate;
  // Everything below is used by the shipper's thread alone, but for `mutex`'s part.
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<std::unique_ptr<Spool>> spools;
  std::vector<PointsFrame> points;  // read, not acknowledged
  size_t unsent = 0;                // points in them
  uint64_t read_bytes = 0;          // of logs, since the last rest
  PointQuota quota;
  bool quota_told = false;
  uint64_t drops_told = 0;
  std::unique_ptr<EventFiles> events;
  size_t event_points = 0;                         // of `points`, from event files
  std::set<std::string, std::less<>> sdk_names;    // athanor.log has them
  std::set<std::string, std::less<>> event_names;  // an event file has them
  std::optional<RegexMetrics> metrics;
  ProgressTracker tracker;
  std::optional<ProgressFrame> progress;
  std::optional<ProgressFrame> last_progress;
  bool sdk_used = false;  // athanor.log() was called
  bool finished = false;  // no stream will grow any more
  std::optional<HttpClient> client;
  LinePauses pauses;
  std::optional<Error> stranger;  // answered in the server's place when last asked
  Millis next_usage{0};
  std::mt19937 jitter;
  int failures = 0;
  bool greeted = false;

  Mutex mutex;
  CondVar wake;
  std::deque<ReportFrame> controls GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Stream>> new_streams GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Spool>> new_spools GUARDED_BY(mutex);
  std::unique_ptr<EventFiles> new_events GUARDED_BY(mutex);
  std::map<std::pair<uint32_t, LogStream>, std::string> tails GUARDED_BY(mutex);  // by rank
  ControlState control GUARDED_BY(mutex);
  bool control_changed GUARDED_BY(mutex) = false;
  bool draining GUARDED_BY(mutex) = false;
  bool drained GUARDED_BY(mutex) = false;
  bool stopping GUARDED_BY(mutex) = false;
  uint64_t looks_wanted GUARDED_BY(mutex) = 0;  // CatchUp calls
  uint64_t looks_done GUARDED_BY(mutex) = 0;    // of them, those that have their answer
  std::atomic<bool> fenced{false};
  std::atomic<bool> done_called{false};
  std::atomic<int64_t> last_taken_ms{0};
  std::thread thread;
};

Shipper::Shipper(Options options) : parts_(std::make_unique<Parts>(std::move(options))) {}

Shipper::~Shipper() { Stop(); }

void Shipper::Follow(uint32_t rank, LogStream stream, std::string path) {
  auto& p = *parts_;
  auto added = std::make_unique<Parts::Stream>();
  added->rank = rank;
  added->stream = stream;
  auto* raw = added.get();
  added->follower = std::make_unique<LogFollower>(
      std::move(path), p.options.secrets,
      [&p, raw](std::string_view bytes, bool shown) { p.Seen(*raw, bytes, shown); });
  MutexLock lock(p.mutex);
  p.new_streams.push_back(std::move(added));
}

Status Shipper::FollowSpool(uint32_t rank, const HeldFolder& dir) {
  SpoolSegments::Options options;
  options.spare = 1;  // more follow on the shipper's thread, once the script runs
  ATHANOR_TRY(UniqueFd opened, dir.Make());
  ATHANOR_TRY(const UniqueFd page, dir.Open());
  ATHANOR_TRY(auto segments, SpoolSegments::Open(std::move(opened), options));
  // The counters of an earlier agent continue; the server sends a stop that it had raised again.
  const auto before = ReadControl(page.get()).value_or(ControlState{});
  ATHANOR_TRY(auto control, ControlPage::Open(page.get()));
  MutexLock held(parts_->mutex);
  auto& state = parts_->control;
  state.checkpoint_now = std::max(state.checkpoint_now, before.checkpoint_now);
  state.capture_now = std::max(state.capture_now, before.capture_now);
  if (state.checkpoint_every_ms == 0) state.checkpoint_every_ms = before.checkpoint_every_ms;
  ATHANOR_CHECK_OK(control.Set(state));
  held.unlock();
  auto added = std::make_unique<Parts::Spool>(
      Parts::Spool{rank, dir, std::move(segments), std::move(control), false});
  MutexLock lock(parts_->mutex);
  parts_->new_spools.push_back(std::move(added));
  return Ok();
}

void Shipper::FollowEvents(EventFiles::Options options) {
  options.secrets = parts_->options.secrets;
  auto added = std::make_unique<EventFiles>(std::move(options));
  MutexLock lock(parts_->mutex);
  parts_->new_events = std::move(added);
}

void Shipper::Send(ReportFrame frame) {
  MutexLock lock(parts_->mutex);
  parts_->controls.push_back(std::move(frame));
  parts_->drained = false;
  parts_->wake.notify_all();
}

void Shipper::Start() {
  parts_->last_taken_ms = parts_->options.clock.Monotonic().count();
  parts_->thread = std::thread([this] { parts_->Loop(); });
}

void Shipper::CatchUp(Millis limit) {
  auto& p = *parts_;
  if (!p.thread.joinable()) return;
  MutexLock lock(p.mutex);
  const uint64_t mine = ++p.looks_wanted;
  p.wake.notify_all();
  p.wake.wait_for(lock, limit, [&]() REQUIRES(p.mutex) {
    return p.looks_done >= mine || p.stopping || p.fenced.load();
  });
}

bool Shipper::Drain() {
  auto& p = *parts_;
  MutexLock lock(p.mutex);
  p.draining = true;
  p.drained = false;
  p.wake.notify_all();
  p.wake.wait(lock, [&]() REQUIRES(p.mutex) { return p.drained || p.stopping || p.fenced.load(); });
  return p.drained && !p.fenced.load();
}

void Shipper::Stop() {
  {
    MutexLock lock(parts_->mutex);
    parts_->stopping = true;
    parts_->wake.notify_all();
  }
  if (parts_->thread.joinable()) parts_->thread.join();
}

std::string Shipper::Tail(uint32_t rank, LogStream stream) const {
  MutexLock lock(parts_->mutex);
  auto it = parts_->tails.find({rank, stream});
  return it == parts_->tails.end() ? std::string() : it->second;
}

bool Shipper::done_called() const { return parts_->done_called.load(); }

Millis Shipper::silence() const {
  return parts_->options.clock.Monotonic() - Millis(parts_->last_taken_ms.load());
}

void Shipper::RaiseStop(const Cause& cause, WallTime deadline) {
  MutexLock lock(parts_->mutex);
  parts_->control.stop = true;
  parts_->control.deadline_unix_ms = deadline.ms;
  parts_->control.cause = cause.kind;
  // At once: the signal follows, and our thread may be waiting for a server that is away.
  parts_->SetControlPages();
}

void Shipper::AdviseCheckpoints(Millis every) {
  MutexLock lock(parts_->mutex);
  if (parts_->control.checkpoint_every_ms == every.count()) return;
  parts_->control.checkpoint_every_ms = every.count();
  parts_->control_changed = true;
}

void Shipper::AskForCapture() {
  MutexLock lock(parts_->mutex);
  ++parts_->control.capture_now;
  parts_->control_changed = true;
}

void Shipper::Parts::Loop() {
  for (;;) {
    const Millis began = OwnTime();
    bool busy = Turn();
    const Millis rest = RestAfter(OwnTime() - began, busy);
    MutexLock lock(mutex);
    if (stopping || fenced.load()) {
      wake.notify_all();
      return;
    }
    if (failures > 0) {
      int64_t pause = std::min<int64_t>(5'000, int64_t{100} << std::min(failures - 1, 6));
      pause = pause / 2 + static_cast<int64_t>(jitter() % static_cast<uint64_t>(pause));
      if (stranger) pause = pauses.After(*stranger).count();
      lock.unlock();
      WaitWhileAway(Millis(pause));
    } else if (draining && !drained) {
      // The end is near.
      wake.wait_for(lock, Millis(1), [this]() REQUIRES(mutex) { return stopping; });
    } else {
      size_t had = controls.size();
      wake.wait_for(lock, rest, [&]() REQUIRES(mutex) {
        return stopping || controls.size() > had || (draining && !drained) || behind();
      });
    }
  }
}

Millis Shipper::Parts::RestAfter(Millis took, bool busy) {
  const uint64_t read = std::exchange(read_bytes, 0);
  if (read < kFlood) return busy ? kTick : kIdleTick;
  uint64_t backlog = 0;
  for (const auto& stream : streams) backlog += stream->follower->unread();
  return backlog > kFloodBacklog ? kTick : std::clamp(took * kFloodRest, kTick, kLongestRest);
}

// Rules and the hang detection still see what is new.
void Shipper::Parts::WaitWhileAway(Millis pause) {
  const auto until = options.clock.Monotonic() + pause;
  MutexLock lock(mutex);
  for (auto now = options.clock.Monotonic(); now < until && !stopping;
       now = options.clock.Monotonic()) {
    lock.unlock();
    ReadSpools();
    Gather(false);
    LookAhead();
    lock.lock();
    wake.wait_for(lock, std::min(kAwayTick, until - now),
                  [this]() REQUIRES(mutex) { return stopping || behind(); });
  }
}

void Shipper::Parts::SetControlPages() {
  for (auto* list : {&spools, &new_spools}) {
    for (auto& spool : *list) {
      if (auto set = spool->control.Set(control); !set) {
        options.log.Log(LogLevel::kWarning, "control page", {{"why", set.error().what}});
      }
    }
  }
  control_changed = false;
}

bool Shipper::Parts::Turn() {
  bool all = false;
  std::vector<ReportFrame> frames;
  size_t taken = 0;
  bool usage_due = false;
  bool fresh_spools = false;
  {
    MutexLock lock(mutex);
    for (auto& stream : new_streams) streams.push_back(std::move(stream));
    for (auto& spool : new_spools) spools.push_back(std::move(spool));
    fresh_spools = !new_spools.empty();
    if (new_events) events = std::move(new_events);
    new_streams.clear();
    new_spools.clear();
    if (fresh_spools) AddSpareSegments();
    all = draining;
    // Before the reports: the held time so far is stored with the state that they change.
    if (auto now = options.clock.Monotonic(); now >= next_usage || !controls.empty()) {
      next_usage = now + kUsageEvery;
      usage_due = true;
    }
    taken = controls.size();
  }
  if (usage_due) frames.emplace_back(options.usage());
  {
    MutexLock lock(mutex);
    if (!greeted) frames.emplace_back(Hello());
    for (size_t i = 0; i < taken; ++i) frames.push_back(controls[i]);
    if (control_changed || fresh_spools) SetControlPages();
  }
  ReadSpools();  // first: a script that logs by itself needs no guesses
  Gather(all);
  ReadEvents(all);
  auto now = options.clock.Monotonic();
  bool data = false;
  for (auto& stream : streams) {
    auto bytes = stream->follower->Sendable(now, kPatience, all);
    if (bytes.empty()) continue;
    data = true;
    frames.emplace_back(LogFrame{options.plan.host, stream->rank, stream->stream,
                                 stream->follower->offset(), options.clock.Wall().ms,
                                 std::string(bytes)});
  }
  for (auto& frame : points) {
    frame.batch.host = options.plan.host;
    frames.emplace_back(frame);
  }
  data = data || !points.empty();
  if (progress) frames.emplace_back(*progress);
  if (!frames.empty() && !Post(std::move(frames), taken)) return true;
  if (AllSent()) {
    MutexLock lock(mutex);
    if (draining && controls.empty() && new_streams.empty() && !new_events) {
      drained = true;
      wake.notify_all();
    }
  }
  return data;
}

void Shipper::Parts::Gather(bool all) {
  auto now = options.clock.Monotonic();
  bool ended = all && !streams.empty();
  for (auto& stream : streams) {
    const uint64_t seen = stream->follower->seen();
    if (unsent < kMostPoints) {
      stream->follower->Read(kReadAhead, now);
      // Only now is it known where the stream ends: its end some turns ago may no longer be the
      // end.
      if (all) stream->follower->Finish();
    }
    read_bytes += stream->follower->seen() - seen;
    ended = ended && stream->follower->finished();
  }
  if (ended && !finished && metrics) {
    finished = true;
    std::vector<MetricPoint> found;
    metrics->Finish(found);
    AddPoints(std::move(found), false);
  }
  WarnUnmatched();
  if (auto at = tracker.At(now); at && at->total > 0) {
    ProgressFrame frame{static_cast<int64_t>(at->done), static_cast<int64_t>(at->total)};
    if (!last_progress || last_progress->done != frame.done ||
        last_progress->total != frame.total) {
      last_progress = progress = frame;
    }
  }
}

// The script starts with one segment; room for bursts is made while it already runs.
void Shipper::Parts::AddSpareSegments() {
  for (auto& spool : spools) {
    if (spool->spare) continue;
    spool->spare = true;
    SpoolSegments::Options options_for_bursts;
    options_for_bursts.spare = kSpareSegments;
    auto opened = spool->dir.Open();
    if (!opened) continue;
    auto segments = SpoolSegments::Open(std::move(*opened), options_for_bursts);
    if (segments) spool->segments = std::move(*segments);
  }
}

void Shipper::Parts::ReadSpools() {
  uint64_t wanted = 0;
  bool whole = false;
  {
    const MutexLock lock(mutex);
    wanted = looks_wanted;
    whole = behind();
  }
  const size_t before = unsent;
  const size_t allowed = finished ? SIZE_MAX : quota.Left(options.clock.Monotonic());
  for (auto& spool : spools) {
    const size_t room = unsent < kMostPoints ? kMostPoints - unsent : 0;
    const size_t may = allowed > unsent - before ? allowed - (unsent - before) : 0;
    auto status = spool->segments.Poll(
        [&](const SpoolBatch& batch) {
          PointsFrame frame;
          frame.batch = PointsOf(batch, spool->rank);
          if (!batch.seen) See(batch, frame.batch);
          if (frame.batch.items.empty()) return;
          unsent += frame.batch.items.size();
          points.push_back(std::move(frame));
        },
        std::min(room, may));
    if (!status) {
      options.log.Log(LogLevel::kWarning, "spool", {{"why", status.error().what}});
    }
    // Code that acts on points does not wait for their turn.
    if (may < room) {
      spool->segments.LookAhead(
          [&](const SpoolBatch& batch) { See(batch, PointsOf(batch, spool->rank)); });
    }
  }
  quota.Take(unsent - before);
  TellAboutTooManyPoints(allowed == 0);
  if (!whole) return;
  LookAheadInSpools();  // what there was no room for
  const MutexLock lock(mutex);
  looks_done = wanted;
  wake.notify_all();
}

// Once when it begins, and then each time the number lost has doubled: a storm must not become a
// storm of notes.
void Shipper::Parts::TellAboutTooManyPoints(bool held_back) {
  if (held_back && !quota_told) {
    quota_told = true;
    const MutexLock lock(mutex);
    controls.emplace_back(
        NoteFrame{{"metrics_quota",
                   "metrics come faster than " + std::to_string(PointQuota::kEachSecond) +
                       " points a second: the rest waits on disk, and is shown later",
                   "log every tenth step: if step % 10 == 0: athanor.log(...)", ""}});
  }
  uint64_t dropped = 0;
  for (const auto& spool : spools) dropped += spool->segments.counts().dropped;
  if (dropped == 0 || dropped < 2 * drops_told) return;
  drops_told = dropped;
  const MutexLock lock(mutex);
  controls.emplace_back(
      NoteFrame{{"metrics_quota",
                 std::to_string(dropped) +
                     " points were dropped so far: they came faster than they can be kept",
                 "log every tenth step: if step % 10 == 0: athanor.log(...)", ""}});
}

void Shipper::Parts::See(const SpoolBatch& batch, const PointBatch& read) {
  if (!read.items.empty()) {
    sdk_used = true;
    for (const auto& item : read.items) {
      if (!sdk_names.contains(item.point.name)) sdk_names.insert(item.point.name);
    }
    if (options.on_points) options.on_points(read);
  }
  for (const auto& mark : batch.marks) {
    if (mark.code == 1) done_called = true;
  }
  for (const auto& saved : batch.checkpoints) {
    if (options.on_checkpoint) options.on_checkpoint(saved);
  }
  for (const auto& step : batch.progress) {
    tracker.Mark(static_cast<double>(step.done), static_cast<double>(step.total), "step",
                 options.clock.Monotonic());
  }
}

// While the server is away, what there is no room for in memory stays on disk; code that acts on it
// sees it now.
void Shipper::Parts::LookAhead() {
  LookAheadInSpools();
  for (auto& stream : streams) {
    if (stream->stream != LogStream::kSetup) LookAheadIn(*stream);
  }
}

void Shipper::Parts::LookAheadInSpools() {
  for (auto& spool : spools) {
    spool->segments.LookAhead(
        [&](const SpoolBatch& batch) { See(batch, PointsOf(batch, spool->rank)); });
  }
}

void Shipper::Parts::LookAheadIn(Stream& stream) {
  if (!stream.follower->looks_ahead()) stream.ahead.reset();
  const auto source = static_cast<uint32_t>(stream.stream);
  stream.follower->LookAhead(kLookAhead, [&](std::string_view bytes) {
    if (options.on_output) options.on_output(bytes.size());
    if (!metrics) return;
    std::vector<MetricPoint> found;
    if (!stream.ahead) {
      auto made = RegexMetrics::Make(options.plan.spec.metrics);
      if (!made) return;
      stream.ahead.emplace(std::move(*made));
      // It begins in the middle of a line, the rest of which was read before.
      const auto open = stream.follower->seen() - metrics->LineStart(Rank{stream.rank}, source);
      MutexLock lock(mutex);
      const std::string_view tail = tails[{stream.rank, stream.stream}];
      stream.ahead->Feed(Rank{stream.rank}, source,
                         tail.substr(tail.size() - std::min<size_t>(open, tail.size())), found);
    }
    stream.ahead->Feed(Rank{stream.rank}, source, bytes, found);
    if (!options.on_points) return;
    for (auto& point : found) {
      if (IsIdle(point)) continue;
      PointBatch seen;
      seen.rank = stream.rank;
      seen.channel = (point.guessed ? kGuessChannel : kRegexChannel) | point.stream;
      seen.items.push_back(
          {point.seq,
           {std::move(point.name), point.step, options.clock.Wall().ms * 1'000'000, point.value}});
      options.on_points(seen);
    }
  });
}

void Shipper::Parts::ReadEvents(bool all) {
  if (!events || event_points >= kMostPoints) return;
  std::vector<EventFiles::Found> found;
  events->Poll(options.clock.Monotonic(), all, kMostPoints - event_points, found);
  const auto& defined = options.plan.spec.metrics;
  std::map<uint32_t, PointsFrame> frames;
  for (auto& one : found) {
    const auto& name = one.point.name;
    if (sdk_names.contains(name)) continue;
    if (std::any_of(defined.begin(), defined.end(),
                    [&](const auto& m) { return m.name == name; })) {
      continue;
    }
    if (!event_names.contains(name)) event_names.insert(name);
    auto& batch = frames[one.file].batch;
    batch.rank = FirstRank(options.plan);
    batch.channel = kEventChannel | one.file;
    batch.items.push_back({one.seq, std::move(one.point)});
  }
  for (auto& [file, frame] : frames) {
    event_points += frame.batch.items.size();
    if (options.on_points) options.on_points(frame.batch);
    points.push_back(std::move(frame));
  }
}

void Shipper::Parts::Seen(const Stream& stream, std::string_view bytes, bool shown) {
  {
    MutexLock lock(mutex);
    KeepTail(tails[{stream.rank, stream.stream}], bytes);
  }
  if (stream.stream == LogStream::kSetup) return;
  if (options.on_output && !shown) options.on_output(bytes.size());
  if (stream.rank == 0) tracker.Feed(bytes, options.clock.Monotonic());
  if (!metrics) return;
  std::vector<MetricPoint> found;
  metrics->Feed(Rank{stream.rank}, static_cast<uint32_t>(stream.stream), bytes, found);
  AddPoints(std::move(found), shown);
}

void Shipper::Parts::AddPoints(std::vector<MetricPoint> found, bool shown) {
  int64_t now_ns = options.clock.Wall().ms * 1'000'000;
  for (auto& point : found) {
    if (IsIdle(point)) continue;
    const uint32_t channel = (point.guessed ? kGuessChannel : kRegexChannel) | point.stream;
    if (points.empty() || points.back().batch.channel != channel ||
        points.back().batch.rank != point.rank.value) {
      points.emplace_back();
      points.back().batch.rank = point.rank.value;
      points.back().batch.channel = channel;
    }
    ++unsent;
    points.back().batch.items.push_back(
        {point.seq, {std::move(point.name), point.step, now_ns, point.value}});
    if (options.on_points && !shown) {
      PointBatch seen;
      seen.rank = point.rank.value;
      seen.channel = channel;
      seen.items.push_back(points.back().batch.items.back());
      options.on_points(seen);
    }
  }
}

// A regex that never matches is reported once, while there is time to correct it. Most scripts
// print metrics on the first host only.
void Shipper::Parts::WarnUnmatched() {
  if (!metrics || options.plan.host > 0) return;
  for (const auto& warning : metrics->TakeWarnings()) {
    MutexLock lock(mutex);
    controls.emplace_back(NoteFrame{
        {"metric_unmatched",
         "metric \"" + warning.name + "\": its regex matched nothing so far (" + warning.text + ")",
         "ath logs " + ShellQuote(options.plan.spec.name) + " --tail 5", warning.sample}});
  }
}

HelloFrame Shipper::Parts::Hello() const {
  const auto& plan = options.plan;
  HelloFrame hello{plan.attempt, static_cast<uint64_t>(::getpid()), plan.host};
  if (plan.host < plan.peers.size()) hello.address = plan.peers[plan.host].address;
  return hello;
}

bool Shipper::Parts::AllSent() {
  if (!points.empty() || (events && !events->finished())) return false;
  for (auto& stream : streams) {
    if (!stream->follower->drained()) return false;
  }
  for (auto& spool : spools) {
    if (!spool->segments.Drained()) return false;
  }
  return true;
}

bool Shipper::Parts::Post(std::vector<ReportFrame> frames, size_t taken) {
  const auto line = ServerLine::Of(options.plan);
  if (!line) {
    ++failures;
    return false;
  }
  if (!client) client.emplace(line->Client());
  HttpCall call;
  call.method = "POST";
  call.target = "/agent/v1/report";
  line->Sign(call);
  call.headers.Add("Content-Type", "application/octet-stream");
  gate.ScrubFrames(frames);
  call.body = EncodeReport(frames);
  call.idempotent = true;
  auto reply = client->Do(call);
  if (reply && reply->status == 410) {
    fenced = true;
    options.on_command(FencedFrame{});
    return true;
  }
  stranger = !reply && IsStranger(reply.error()) ? std::optional(reply.error()) : std::nullopt;
  if (stranger) pauses.Tell(options.log, *stranger);
  if (!reply || !reply->ok()) {
    if (failures++ == 0 && !stranger) {
      options.log.Log(LogLevel::kWarning, "report not taken",
                      {{"why", reply ? std::to_string(reply->status) + " " + reply->body
                                     : reply.error().what}});
    }
    greeted = false;
    return false;
  }
  failures = 0;
  pauses.Answered();
  greeted = true;
  last_taken_ms = options.clock.Monotonic().count();
  for (const auto& frame : points) {
    if (frame.batch.channel & (kRegexChannel | kEventChannel)) continue;
    for (auto& spool : spools) {
      if (spool->rank == frame.batch.rank) {
        spool->segments.Acknowledge(frame.batch.channel, frame.batch.items.back().seq);
      }
    }
  }
  points.clear();
  unsent = 0;
  event_points = 0;
  progress.reset();
  {
    MutexLock lock(mutex);
    controls.erase(controls.begin(), controls.begin() + static_cast<ptrdiff_t>(taken));
  }
  if (auto decoded = DecodeReply(reply->body)) Handle(*decoded);
  return true;
}

void Shipper::Parts::Handle(const std::vector<ReplyFrame>& replies) {
  for (const auto& reply : replies) {
    if (const auto* ack = std::get_if<LogAckFrame>(&reply)) {
      for (auto& stream : streams) {
        if (stream->rank == ack->rank && stream->stream == ack->stream) {
          stream->follower->Acknowledge(ack->length);
        }
      }
    } else {
      options.on_command(reply);
    }
  }
}

}  // namespace athanor
