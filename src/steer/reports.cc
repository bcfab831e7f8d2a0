#include "steer/reports.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "steer/decide.h"

namespace athanor {
namespace {

// What is left of a gang has this long to save and end, or less if its job says so.
constexpr Millis kPeerGrace = std::chrono::seconds(30);

// The ranks of one host.
struct OwnRanks {
  uint32_t host = 0;
  uint32_t each = 1;
  uint32_t first() const { return host * each; }
  bool Has(uint32_t rank) const { return rank >= first() && rank - first() < each; }
};

Error Denied(std::string what, std::string why) {
  return Error{ErrorCode::kDenied, std::move(what)}.Why(std::move(why)).Id("ATH-A0012");
}

Status CheckHost(const OwnRanks& own, uint32_t host) {
  if (host == own.host) return Ok();
  return Fail(
      Denied("a report of " + HostNameOf(host) + " came with the token of " + HostNameOf(own.host),
             "an agent reports for its own host only"));
}

Status CheckRank(const OwnRanks& own, uint32_t rank) {
  if (own.Has(rank)) return Ok();
  return Fail(Denied(
      HostNameOf(own.host) + " reported rank " + std::to_string(rank) + ", which is another host's",
      "its ranks are " + std::to_string(own.first()) + " to " +
          std::to_string(own.first() + own.each - 1)));
}

// Whether a frame says only what its sender may say.
struct Check {
  const OwnRanks& own;
  Status operator()(const HelloFrame& f) const { return CheckHost(own, f.host); }
  Status operator()(const LogFrame& f) const {
    ATHANOR_CHECK_OK(CheckHost(own, f.host));
    return CheckRank(own, f.rank);
  }
  Status operator()(const PointsFrame& f) const {
    ATHANOR_CHECK_OK(CheckHost(own, f.batch.host));
    return CheckRank(own, f.batch.rank);
  }
  Status operator()(const EndedFrame& f) const {
    for (const auto& end : f.ranks) ATHANOR_CHECK_OK(CheckRank(own, end.rank));
    return Ok();
  }
  template <class Other>
  Status operator()(const Other&) const {
    return Ok();
  }
};

// Stores what is not part of the record, and makes an event of what is.
class Taker {
 public:
  Taker(Engine& engine, ReportSink& sink, const Reporter& from)
      : engine_(engine), sink_(sink), from_(from) {}

  using Happened = std::optional<JobEvent>;
  Result<Happened> Take(ReportFrame& frame) {
    return std::visit([this](auto& f) { return On(f); }, frame);
  }
  const std::vector<ReplyFrame>& acks() const { return acks_; }

 private:
  Result<Happened> On(HelloFrame& f) { return AgentUp{from_.attempt, from_.host, f.address}; }
  Result<Happened> On(LogFrame& f) {
    ATHANOR_TRY(const uint64_t length, sink_.TakeLog(from_, f));
    acks_.push_back(LogAckFrame{f.host, f.rank, f.stream, length});
    return std::nullopt;
  }
  Result<Happened> On(PointsFrame& f) {
    f.batch.attempt = from_.number;
    ATHANOR_CHECK_OK(sink_.TakePoints(from_, f.batch));
    return std::nullopt;
  }
  Result<Happened> On(UsageFrame& f) {
    engine_.Touch(from_.attempt, from_.host, f.held_ms,
                  {f.cpu_percent, f.memory_bytes, f.memory_peak});
    if (from_.current) sink_.TakeUsage(from_, f);
    return std::nullopt;
  }
  Result<Happened> On(ProgressFrame& f) {
    if (from_.current) sink_.TakeProgress(from_, f);
    return std::nullopt;
  }
  Result<Happened> On(StartedFrame& f) {
    if (from_.current) sink_.TakeSupervisor(from_, f.supervisor_pid);
    return ScriptStarted{from_.attempt, f.setup_ms, std::move(f.off), from_.host};
  }
  Result<Happened> On(PrepareFailedFrame& f) {
    return PrepareFailed{from_.attempt, std::move(f.cause), from_.host};
  }
  Result<Happened> On(EndedFrame& f) {
    return ScriptEnded{from_.attempt, std::move(f.exit), std::move(f.cause), from_.host,
                       std::move(f.ranks)};
  }
  Result<Happened> On(UploadedFrame& f) {
    return Uploaded{from_.attempt, std::move(f.outputs), std::move(f.failure),
                    std::move(f.packages), from_.host};
  }
  Result<Happened> On(ResumedFrame& f) { return Resumed{from_.attempt, f.checkpoint, f.step}; }
  Result<Happened> On(CheckpointFrame& f) {
    return CheckpointKept{from_.attempt, f.checkpoint, f.advice};
  }
  Result<Happened> On(FiringFrame& f) { return RuleFired{from_.attempt, f.firing}; }
  Result<Happened> On(NoteFrame& f) { return Noted{from_.attempt, f.cause, from_.host}; }

  Engine& engine_;
  ReportSink& sink_;
  const Reporter& from_;
  std::vector<ReplyFrame> acks_;
};

// How a host of a gang is told that its attempt is decided.
StopFrame PeerFailed(const JobRecord& record, const FirstFall& fell) {
  std::string who = HostNameOf(fell.host);
  if (fell.rank) who += " (rank " + std::to_string(*fell.rank) + ")";
  return {{CauseKind::kPeerFailed, who + " ended first: " + fell.cause.text, "", fell.cause.kind},
          std::min(kPeerGrace, record.spec.limits.stop_grace).count(),
          false};
}

}  // namespace

std::vector<ReplyFrame> CommandsFor(const JobRecord& record, uint32_t host) {
  const auto* attempt = record.current();
  const bool fell = attempt && attempt->fell && attempt->fell->host != host;
  std::vector<ReplyFrame> frames;
  const auto stop = [&](const StopRequest& asked, bool interrupt) {
    StopFrame frame{asked.cause, asked.grace.count(), interrupt};
    if (fell)
      frame.grace_ms = std::min(frame.grace_ms, PeerFailed(record, *attempt->fell).grace_ms);
    frames.push_back(std::move(frame));
  };
  if (record.stop) {
    stop(*record.stop, false);
  } else if (attempt && attempt->interrupt) {
    stop(*attempt->interrupt, true);
  } else if (fell) {
    frames.push_back(PeerFailed(record, *attempt->fell));
  }
  return frames;
}

void Reports::Take(AttemptId attempt, uint32_t host, std::vector<ReportFrame> frames,
                   std::function<void(Answer)> done) {
  const auto job = engine_.JobOf(attempt);
  const auto* live = job ? engine_.Live(*job) : nullptr;
  if (live == nullptr) return done({true, {}, {}});
  Reporter from{*job, attempt, 1, host, false};
  for (const auto& known : live->attempts) {
    if (known.id == attempt) from.number = known.number;
  }
  from.current = live->current()->id == attempt && live->current()->ended.ms == 0;
  const OwnRanks own{host, std::max(live->spec.resources.processes, 1u)};
  for (const auto& frame : frames) {
    if (auto allowed = std::visit(Check{own}, frame); !allowed) {
      return done({false, allowed.error(), {}});
    }
  }
  struct Waits {
    size_t left = 1;
    Answer answer;
    std::function<void(Answer)> done;
  };
  auto waits = std::make_shared<Waits>();
  waits->done = std::move(done);
  const auto one_done = [engine = &engine_, job = *job, host, waits](const Status& status) {
    auto& answer = waits->answer;
    if (!status && status.error().code == ErrorCode::kConflict) answer.fenced = true;
    if (!status && status.error().code == ErrorCode::kInvalid) answer.refused = status.error();
    if (--waits->left > 0) return;
    if (const auto* now = engine->Live(job); now && !answer.fenced && !answer.refused) {
      for (auto& command : CommandsFor(*now, host)) answer.frames.push_back(std::move(command));
    }
    waits->done(std::move(answer));
  };
  Taker taker(engine_, sink_, from);
  for (auto& frame : frames) {
    auto event = taker.Take(frame);
    if (!event) {
      // The same report comes again: what was applied of it is then known.
      waits->left += 1;
      waits->done({false, event.error(), {}});
      return;
    }
    if (!*event) continue;
    ++waits->left;
    engine_.Apply(*job, std::move(**event), one_done);
  }
  waits->answer.frames.insert(waits->answer.frames.begin(), taker.acks().begin(),
                              taker.acks().end());
  one_done(Ok());
}

}  // namespace athanor
