#include "steer/decide.h"

#include <algorithm>

#include "job/causes.h"

namespace athanor {
namespace {

// Attempts that may be lost to the infrastructure before the job is given up.
constexpr uint32_t kMostLaunchFailures = 3;

class Decider {
 public:
  Decider(const JobRecord& record, WallTime now) : now_(now) { out_.record = record; }

  Result<Outcome> Run(const JobEvent& event) {
    ATHANOR_CHECK_OK(std::visit([this](const auto& e) { return On(e); }, event));
    out_.record.updated = now_;
    return std::move(out_);
  }

 private:
  JobRecord& record() { return out_.record; }
  Attempt& attempt() { return *out_.record.current(); }

  void Note(std::string_view name, const Cause& cause) {
    StoredEvent stored;
    stored.job = record().id;
    stored.seq = ++record().event_seq;
    stored.at = now_;
    stored.name = name;
    stored.state = record().state;
    stored.attempt = record().attempts.empty() ? 0 : record().attempts.back().number;
    stored.cause = cause;
    out_.events.push_back(std::move(stored));
  }

  void Do(EffectKind kind) {
    out_.effects.push_back({0, kind, record().id, attempt().id});
  }

  Status Go(Step step, std::string_view name, const Cause& cause) {
    auto next = Next(record().state, step);
    if (!next) {
      return Fail(ErrorCode::kConflict, "a job that is " + std::string(NameOf(record().state)) +
                                            " cannot " + std::string(NameOf(step)));
    }
    record().state = *next;
    record().cause = cause;
    if (IsTerminal(*next)) record().ended = now_;
    Note(name, cause);
    return Ok();
  }

  // The attempt gives its room back.
  void EndAttempt(const Cause& cause) {
    attempt().ended = now_;
    attempt().cause = cause;
    Do(EffectKind::kRelease);
  }

  Status CheckAttempt(const AttemptId& id) {
    const auto* current = record().current();
    if (!current || current->id != id || current->ended.ms != 0) {
      return Fail(ErrorCode::kConflict, "that attempt was replaced or is over");
    }
    return Ok();
  }

  bool MayRetry(const Cause& cause) const {
    const auto& retry = out_.record.spec.retry;
    const auto* row = FindCause(cause.kind);
    bool infrastructure = row && row->infrastructure;
    bool named = std::find(retry.on.begin(), retry.on.end(), cause.kind) != retry.on.end();
    if (!named && !(retry.on.empty() && infrastructure)) return false;
    return out_.record.attempts.size() <= retry.max;
  }

  // Ends the attempt, then the job: by the stop that was asked for, by another
  // attempt, or as `cause` says.
  Status Finish(const Cause& cause, std::string_view name) {
    EndAttempt(cause);
    if (record().stop && cause.kind != "completed") {
      Cause why = cause.kind == record().stop->cause.kind ? cause : record().stop->cause;
      if (why.detail.empty()) why.detail = cause.text;
      return Go(Step::kStop, name, why);
    }
    if (cause.kind == "completed") return Go(Step::kComplete, name, cause);
    if (cause.kind == "time_limit") return Go(Step::kStop, name, cause);
    if (MayRetry(cause)) {
      ATHANOR_CHECK_OK(Go(Step::kInterrupt, name, cause));
      return Go(Step::kRequeue, "requeued",
                {"backoff", "attempt " + std::to_string(attempt().number) + " ended: " + cause.text,
                 "", ""});
    }
    return Go(Step::kFail, name, cause);
  }

  Status On(const Submitted&) {
    Note("submitted", {"queued", "accepted", "", ""});
    record().cause = {"queued", "accepted, not placed yet", "", ""};
    return Ok();
  }

  Status On(const Placed& e) {
    Attempt next;
    next.id = e.attempt;
    next.number = static_cast<uint32_t>(record().attempts.size()) + 1;
    next.placement = e.placement;
    next.placed = now_;
    record().attempts.push_back(std::move(next));
    record().simulated = record().simulated || e.placement.simulated;
    Do(EffectKind::kLaunch);
    return Go(Step::kPlace, "placed", {});
  }

  Status On(const Waiting& e) {
    if (record().state != JobState::kQueued) {
      return Fail(ErrorCode::kConflict, "only a queued job waits");
    }
    bool same_kind = record().cause.kind == e.cause.kind;
    record().cause = e.cause;
    if (!same_kind) Note("waiting", e.cause);
    return Ok();
  }

  Status On(const Launched& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    attempt().handle = e.handle;
    return Ok();
  }

  Status On(const LaunchFailed& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    EndAttempt(e.cause);
    if (record().stop) return Go(Step::kStop, "launch_failed", record().stop->cause);
    if (e.permanent || record().attempts.size() >= kMostLaunchFailures) {
      return Go(Step::kFail, "launch_failed", e.cause);
    }
    ATHANOR_CHECK_OK(Go(Step::kInterrupt, "launch_failed", e.cause));
    return Go(Step::kRequeue, "requeued", {"backoff", "could not be started: " + e.cause.text, "", ""});
  }

  Status On(const AgentUp& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    record().last_seen = now_;
    if (record().state != JobState::kPlacing) return Ok();  // it came back
    attempt().prepared = now_;
    return Go(Step::kPrepare, "agent_up", {});
  }

  Status On(const PrepareFailed& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    if (record().state != JobState::kPreparing) return Ok();  // said twice
    return Finish(e.cause, "prepare_failed");
  }

  Status On(const ScriptStarted& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    if (record().state != JobState::kPreparing) return Ok();
    attempt().started = now_;
    attempt().setup_ms = e.setup_ms;
    attempt().off = e.off;
    return Go(Step::kStart, "script_started", {});
  }

  Status On(const ScriptEnded& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    if (record().state != JobState::kRunning) return Ok();
    attempt().exited = now_;
    attempt().exit = e.exit;
    attempt().cause = e.cause;
    return Go(Step::kEnd, "script_ended", e.cause);
  }

  Status On(const Uploaded& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    if (record().state != JobState::kUploading) return Ok();
    record().outputs = e.outputs;
    record().packages = e.packages;
    Cause cause = attempt().cause;
    // A script that succeeded but whose outputs are lost did not succeed for its owner.
    if (!e.failure.kind.empty() && cause.kind == "completed") cause = e.failure;
    return Finish(cause, "ended");
  }

  Status On(const HostLost& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    return Finish(e.cause, "host_lost");
  }

  Status On(const StopAsked& e) {
    if (IsTerminal(record().state)) {
      return Fail(ErrorCode::kConflict,
                  "the job is already " + std::string(NameOf(record().state)));
    }
    if (record().stop) return Ok();  // asked twice, done once
    record().stop = StopRequest{e.cause, e.who, now_, e.grace};
    if (!HoldsRoom(record().state)) return Go(Step::kStop, "stop_asked", e.cause);
    Note("stop_asked", e.cause);
    Do(EffectKind::kStop);
    return Ok();
  }

  Status On(const Noted& e) {
    Note("noted", e.cause);
    return Ok();
  }

  Outcome out_;
  WallTime now_;
};

}  // namespace

Result<Outcome> Decide(const JobRecord& record, const JobEvent& event, WallTime now) {
  return Decider(record, now).Run(event);
}

WallTime NotBefore(const JobRecord& record) {
  if (record.attempts.empty()) return {};
  int64_t pause = std::max<int64_t>(record.spec.retry.backoff.count(), 1000);
  size_t lost = std::min<size_t>(record.attempts.size(), 7);
  return {record.attempts.back().ended.ms + pause * (int64_t{1} << (lost - 1))};
}

}  // namespace athanor
