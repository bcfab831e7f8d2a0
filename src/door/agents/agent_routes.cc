// The agents' door: reports in, acknowledgements and commands out.
#include <cstdlib>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "door/doors.h"
#include "door/hub.h"

namespace athanor {
namespace {

constexpr Millis kHold{25'000};

// What a live attempt must be sent, if anything.
std::vector<ReplyFrame> CommandsFor(const JobRecord& record) {
  std::vector<ReplyFrame> frames;
  const auto* attempt = record.current();
  if (record.stop) {
    frames.push_back(StopFrame{record.stop->cause, record.stop->grace.count()});
  } else if (attempt && attempt->interrupt) {
    frames.push_back(
        StopFrame{attempt->interrupt->cause, attempt->interrupt->grace.count(), true});
  }
  return frames;
}

void SendFrames(const Responder& responder, const std::vector<ReplyFrame>& frames) {
  Response response;
  response.headers.Add("Content-Type", "application/octet-stream");
  response.body = EncodeReply(frames);
  responder.Send(std::move(response));
}

// 410 tells the agent that its attempt is over.
void SendFenced(const Responder& responder) {
  responder.Send(ErrorResponse(410, Error{ErrorCode::kConflict, "this attempt is over"}));
}

class ReportTaker {
 public:
  ReportTaker(DoorContext& context, JobId job, AttemptId attempt)
      : context_(context), job_(job), attempt_(attempt) {}

  // Applies the frames in order. Logs and points are stored (write(2)) when this
  // returns; state changes are durable when the reply goes out.
  void Take(std::vector<ReportFrame> frames, const Responder& responder) {
    auto waiting = std::make_shared<int>(1);
    auto refused = std::make_shared<bool>(false);
    auto answer = [this_context = &context_, job = job_, acks = acks_, waiting, refused,
                   responder](const Status& status) {
      if (!status && status.error().code == ErrorCode::kConflict) *refused = true;
      if (--*waiting > 0) return;
      if (*refused) return SendFenced(responder);
      std::vector<ReplyFrame> reply;
      for (const auto& ack : *acks) reply.push_back(ack);
      if (const auto* live = this_context->engine.Live(job)) {
        for (auto& command : CommandsFor(*live)) reply.push_back(std::move(command));
      }
      SendFrames(responder, reply);
    };
    for (auto& frame : frames) {
      auto event = std::visit([this](auto& f) { return On(f); }, frame);
      if (!error_.what.empty()) return responder.Send(ErrorResponse(error_));
      if (!event) continue;
      ++*waiting;
      context_.engine.Apply(job_, std::move(*event), answer);
    }
    answer(Ok());
  }

 private:
  using Happened = std::optional<JobEvent>;

  uint32_t number() const {
    const auto* live = context_.engine.Live(job_);
    if (!live) return 1;
    for (const auto& attempt : live->attempts) {
      if (attempt.id == attempt_) return attempt.number;
    }
    return 1;
  }

  // What a replaced attempt says of itself now is not what the job does now.
  bool IsCurrent() const {
    const auto* live = context_.engine.Live(job_);
    return live && live->current() && live->current()->id == attempt_ &&
           live->current()->ended.ms == 0;
  }

  Happened On(HelloFrame&) { return AgentUp{attempt_}; }
  Happened On(LogFrame& f) {
    LogChunk chunk{number(), f.host, f.rank, f.stream, f.offset, f.wall_ms, f.bytes};
    auto appended = context_.logs.Append(job_, chunk);
    uint64_t length = 0;
    if (appended) {
      length = appended->length;
      if (appended->added > 0) context_.hub.Tell(job_, News::kLog);
    } else if (appended.error().code == ErrorCode::kInvalid) {
      // A gap: the sender goes back to what is there.
      auto known = context_.logs.Length(job_, chunk.attempt, f.host, f.rank, f.stream);
      length = known ? *known : 0;
    } else {
      error_ = appended.error();
      return std::nullopt;
    }
    acks_->push_back({f.host, f.rank, f.stream, length});
    return std::nullopt;
  }
  Happened On(PointsFrame& f) {
    f.batch.attempt = number();
    auto added = context_.points.Take(job_, f.batch);
    if (!added && added.error().code == ErrorCode::kInvalid) {
      // Names no series may have: sent again they would be refused again, for ever.
      context_.log.Log(LogLevel::kWarning, "points dropped",
                       {{"job", job_.ToString()}, {"why", added.error().what}});
    } else if (!added) {
      error_ = added.error();
    }
    return std::nullopt;
  }
  Happened On(UsageFrame& f) {
    context_.engine.Touch(attempt_, f.held_ms);
    if (!IsCurrent()) return std::nullopt;
    context_.hub.Stats(job_).usage = f;
    context_.hub.Tell(job_, News::kUsage);
    return std::nullopt;
  }
  Happened On(ProgressFrame& f) {
    if (!IsCurrent()) return std::nullopt;
    context_.hub.Stats(job_).progress = f;
    context_.hub.Tell(job_, News::kUsage);
    return std::nullopt;
  }
  Happened On(StartedFrame& f) {
    if (IsCurrent()) context_.hub.Stats(job_).supervisor_pid = f.supervisor_pid;
    return ScriptStarted{attempt_, f.setup_ms, f.off};
  }
  Happened On(PrepareFailedFrame& f) { return PrepareFailed{attempt_, f.cause}; }
  Happened On(EndedFrame& f) { return ScriptEnded{attempt_, f.exit, f.cause}; }
  Happened On(UploadedFrame& f) {
    return Uploaded{attempt_, f.outputs, f.failure, f.packages};
  }
  Happened On(ResumedFrame& f) { return Resumed{attempt_, f.checkpoint, f.step}; }
  Happened On(CheckpointFrame& f) { return CheckpointKept{attempt_, f.checkpoint, f.advice}; }
  Happened On(FiringFrame& f) { return RuleFired{attempt_, f.firing}; }
  Happened On(NoteFrame& f) { return Noted{attempt_, f.cause}; }

  DoorContext& context_;
  JobId job_;
  AttemptId attempt_;
  std::shared_ptr<std::vector<LogAckFrame>> acks_ = std::make_shared<std::vector<LogAckFrame>>();
  Error error_;
};

void Report(DoorContext& context, const Call& call) {
  auto attempt = *call.caller.attempt;
  auto job = context.engine.JobOf(attempt);
  if (!job) return SendFenced(call.responder);
  auto frames = DecodeReport(call.request.body);
  if (!frames) return call.Refuse(frames.error());
  ReportTaker(context, *job, attempt).Take(std::move(*frames), call.responder);
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
  auto ready = [&context, attempt, job = *job, known](bool last, const Responder& responder) {
    const auto* live = context.engine.Live(job);
    bool over = !live || !live->current() || live->current()->id != attempt;
    if (over) {
      SendFenced(responder);
      return true;
    }
    auto frames = CommandsFor(*live);
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
