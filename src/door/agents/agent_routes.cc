// The agents' door: reports in, acknowledgements and commands out.
#include <cstdlib>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "door/doors.h"
#include "steer/hub.h"
#include "steer/reports.h"

namespace athanor {
namespace {

constexpr Millis kHold{25'000};

void SendFrames(const Responder& responder, const std::vector<ReplyFrame>& frames) {
  Response response;
  response.headers.Add("Content-Type", "application/octet-stream");
  response.body = EncodeReply(frames);
  responder.Send(std::move(response));
}

// 410 tells the agent that its attempt is over.
void SendFenced(const Responder& responder) { responder.Send(AttemptOver()); }

// Where that goes which is not part of a job's record.
class Sink final : public ReportSink {
 public:
  explicit Sink(DoorContext& context) : context_(context) {}

  Result<uint64_t> TakeLog(const Reporter& from, const LogFrame& f) override {
    LogChunk chunk{from.number, f.host, f.rank, f.stream, f.offset, f.wall_ms, f.bytes};
    auto appended = context_.logs.Append(from.job, chunk);
    if (appended) {
      if (appended->added > 0) context_.hub.Tell(from.job, News::kLog);
      return appended->length;
    }
    if (appended.error().code != ErrorCode::kInvalid) return tl::unexpected(appended.error());
    // A gap: the sender goes back to what is there.
    return context_.logs.Length(from.job, chunk.attempt, f.host, f.rank, f.stream).value_or(0);
  }

  Status TakePoints(const Reporter& from, const PointBatch& batch) override {
    const auto added = context_.points.Take(from.job, batch);
    if (!added && added.error().code == ErrorCode::kInvalid) {
      // Names no series may have: sent again they would be refused again, for ever.
      context_.log.Log(LogLevel::kWarning, "points dropped",
                       {{"job", from.job.ToString()}, {"why", added.error().what}});
      return Ok();
    }
    if (!added) return tl::unexpected(added.error());
    return Ok();
  }

  // What the page shows live is that of the first host; that of each is in the record.
  void TakeUsage(const Reporter& from, const UsageFrame& frame) override {
    context_.hub.Stats(from.job).hosts[from.host] = frame;
    if (from.host == 0) context_.hub.Stats(from.job).usage = frame;
    context_.hub.Tell(from.job, News::kUsage);
  }
  void TakeProgress(const Reporter& from, const ProgressFrame& frame) override {
    context_.hub.Stats(from.job).progress = frame;
    context_.hub.Tell(from.job, News::kUsage);
  }
  void TakeSupervisor(const Reporter& from, uint64_t pid) override {
    if (from.host == 0) context_.hub.Stats(from.job).supervisor_pid = pid;
  }

 private:
  DoorContext& context_;
};

void Report(DoorContext& context, const Call& call) {
  auto frames = DecodeReport(call.request.body);
  if (!context.engine.JobOf(*call.caller.attempt)) return SendFenced(call.responder);
  if (!frames) return call.Refuse(frames.error());
  Sink sink(context);
  Reports(context.engine, sink)
      .Take(*call.caller.attempt, call.caller.host, std::move(*frames),
            [responder = call.responder](const Reports::Answer& answer) {
              if (answer.fenced) return SendFenced(responder);
              if (answer.refused) return responder.Send(ErrorResponse(*answer.refused));
              SendFrames(responder, answer.frames);
            });
}

// What is new to an agent that carries out a stop with `known` of grace: a shorter one.
void DropKnown(std::vector<ReplyFrame>& frames, std::optional<int64_t> known) {
  if (!known) return;
  std::erase_if(frames, [&](const ReplyFrame& frame) {
    const auto* stop = std::get_if<StopFrame>(&frame);
    return stop != nullptr && stop->grace_ms >= *known;
  });
}

// Answers when there is a command, or after a while without one.
void Commands(DoorContext& context, const Call& call) {
  auto attempt = *call.caller.attempt;
  auto job = context.engine.JobOf(attempt);
  if (!job) return SendFenced(call.responder);
  std::optional<int64_t> known;
  if (const auto grace = call.request.Query("stopping_ms")) {
    known = std::strtoll(grace->c_str(), nullptr, 10);
  }
  auto ready = [&context, attempt, host = call.caller.host, job = *job, known](
                   bool last, const Responder& responder) {
    const auto* live = context.engine.Live(job);
    bool over = !live || !live->current() || live->current()->id != attempt;
    if (over) {
      SendFenced(responder);
      return true;
    }
    auto frames = CommandsFor(*live, host);
    DropKnown(frames, known);
    if (frames.empty() && !last) return false;
    SendFrames(responder, frames);
    return true;
  };
  if (ready(false, call.responder)) return;
  auto listener = std::make_shared<Hub::Id>(0);
  auto timer = context.loop.After(kHold, [&context, ready, listener, responder = call.responder] {
    context.hub.Forget(*listener);
    ready(true, responder);
  });
  *listener = context.hub.Listen(
      *job, [&context, ready, listener, timer, responder = call.responder](JobId, News news) {
        if (news != News::kState || !ready(false, responder)) return;
        context.loop.Cancel(timer);
        context.hub.Forget(*listener);
      });
}

// The values of the built-in store's secrets that the job names; nothing else.
void Secrets(DoorContext& context, const Call& call) {
  auto job = JobNowIn(context, *call.caller.attempt);
  if (!job) return SendFenced(call.responder);
  const auto* live = context.engine.Live(*job);
  Json values = Json::object();
  auto add = [&](const std::string& name) {
    if (auto value = context.secrets.Reveal(name)) values[name] = *value;
  };
  for (const auto& secret : live->spec.secrets) {
    if (secret.source == "store") add(secret.name);
  }
  if (!live->spec.environment.index_secret.empty()) add(live->spec.environment.index_secret);
  call.Json(200, DumpJson(values));
}

}  // namespace

std::vector<DoorRoute> AgentRoutes(DoorContext& context) {
  return {
      Native("agent.report", [&context](const Call& call) { Report(context, call); }),
      Native("agent.commands", [&context](const Call& call) { Commands(context, call); }),
      Native("agent.secrets", [&context](const Call& call) { Secrets(context, call); }),
  };
}

}  // namespace athanor
