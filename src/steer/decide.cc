#include "steer/decide.h"

#include <algorithm>

#include "base/text/text.h"
#include "job/causes.h"
#include "steer/attempts.h"

namespace athanor {
namespace {

// Attempts that may be lost to the infrastructure before the job is given up.
constexpr uint32_t kMostLaunchFailures = 3;
// Losses in a row without a new checkpoint, on machines that should not be taken away.
constexpr uint32_t kMostFruitless = 10;
constexpr size_t kMostFirings = 32;

class Decider {
 public:
  Decider(JobRecord record, WallTime now) : now_(now) { out_.record = std::move(record); }

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

  void Do(EffectKind kind) { out_.effects.push_back({0, kind, record().id, attempt().id}); }

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

  // As Go, for what is no reason for the state: only the event tells which host it was.
  Status GoOn(Step step, std::string_view name, uint32_t host) {
    ATHANOR_CHECK_OK(Go(step, name, OnHost(host, {})));
    record().cause = {};
    return Ok();
  }

  bool IsGang() { return attempt().hosts.size() > 1; }

  // What happened on one host of several is told with the host's name.
  Cause OnHost(uint32_t host, Cause cause) {
    const std::string name = HostNameOf(host);
    const bool named = cause.text.find(name) != std::string::npos;
    if (IsGang() && !named) cause.text = name + (cause.text.empty() ? "" : ": ") + cause.text;
    return cause;
  }

  // A host that is over reports nothing more; what it says again is known.
  Result<Host*> HostOf(const AttemptId& id, uint32_t host) {
    ATHANOR_CHECK_OK(CheckAttempt(id));
    auto& hosts = attempt().hosts;
    if (host >= hosts.size()) {
      return Fail(Error{ErrorCode::kInvalid,
                        "the attempt has " + std::to_string(hosts.size()) +
                            (hosts.size() == 1 ? " host" : " hosts") + ", and no " +
                            HostNameOf(host),
                        "ath show " + ShellQuote(record().spec.name)}
                      .Id("ATH-A0011"));
    }
    auto& known = hosts[host];
    if (known.up.ms == 0 && known.over.ms != 0) {
      return Fail(ErrorCode::kConflict, known.name + " of this attempt was given up");
    }
    return &known;
  }

  bool RanksAreOver() {
    return std::ranges::all_of(
        attempt().hosts, [](const Host& host) { return host.exited.ms != 0 || host.over.ms != 0; });
  }
  bool AllHostsAreOver() {
    return std::ranges::all_of(attempt().hosts, [](const Host& host) { return host.over.ms != 0; });
  }

  // The first fall is recorded, and the others are stopped. What ends because everything is asked
  // to end does not fall.
  void Fall(uint32_t host, std::optional<uint32_t> rank, const Cause& cause) {
    const bool asked = record().stop || attempt().interrupt;
    const bool alone = !IsGang() && record().spec.resources.processes <= 1;
    if (asked || alone || attempt().fell || cause.Is(CauseKind::kPeerFailed)) return;
    attempt().fell = FirstFall{host, rank, now_, cause};
    if (!IsGang() || AllHostsAreOver()) return;
    Do(EffectKind::kStop);
    record().cause = OnHost(host, {CauseKind::kPeerFailed, cause.text});
    record().cause.text += "; the other hosts are being stopped";
  }

  // Which rank of a host that ended with `cause` fell first.
  std::optional<uint32_t> FirstFallen(uint32_t host, const std::vector<RankEnd>& ranks) {
    for (const auto& end : ranks) {
      if (end.code != 0 || end.signal != 0) return end.rank;
    }
    if (!ranks.empty()) return ranks.front().rank;
    return host * record().spec.resources.processes;
  }

  // How the hosts ended, taken together: as the first that fell, else as the worst of them.
  void SumUpHosts() {
    auto& a = attempt();
    const auto* worst = &a.hosts.front();
    for (const auto& host : a.hosts) {
      const bool better =
          worst->cause.Is(CauseKind::kCompleted) || worst->cause.Is(CauseKind::kPeerFailed);
      if (better && !host.cause.Is(CauseKind::kCompleted)) worst = &host;
    }
    if (a.fell) worst = &a.hosts[a.fell->host];
    a.cause = a.fell ? a.fell->cause : worst->cause;
    if (a.fell && !a.fell->rank) a.cause = OnHost(a.fell->host, a.cause);
    a.exit = worst->exit;
    if (!IsGang() || !a.exit) return;
    auto& sum = *a.exit;
    if (a.fell && a.fell->rank) sum.first_rank = *a.fell->rank;
    for (const auto& host : a.hosts) {
      if (!host.exit || &host == worst) continue;
      const auto& exit = *host.exit;
      sum.memory_peak = std::max(sum.memory_peak, exit.memory_peak);
      sum.cpu_ms += exit.cpu_ms;
      sum.log_dropped += exit.log_dropped;
      sum.notice_ms = std::max(sum.notice_ms, exit.notice_ms);
      sum.saved_ms = std::max(sum.saved_ms, exit.saved_ms);
      sum.done_called = sum.done_called || exit.done_called;
      for (const auto& line : exit.matched) {
        if (std::ranges::find(sum.matched, line) == sum.matched.end()) sum.matched.push_back(line);
      }
    }
  }

  // After a host ended in some way: on to what that means for all of them.
  Status AfterHost(std::string_view name, const Cause& told) {
    SumUpHosts();
    const bool over = RanksAreOver();
    if (over && attempt().started.ms != 0 && attempt().exited.ms == 0) attempt().exited = now_;
    if (AllHostsAreOver()) return Finish(attempt().cause, name);
    if (record().state != JobState::kRunning || !over) {
      Note(name, told);
      return Ok();
    }
    ATHANOR_CHECK_OK(Go(Step::kEnd, name, told));
    record().cause = attempt().cause;
    return Ok();
  }

  // What a host left replaces what the same host of an earlier attempt left.
  void KeepOutputs(uint32_t host, const std::vector<Output>& outputs) {
    const std::string prefix = OutputNameOf(host, "");
    std::erase_if(record().outputs, [&](const Output& output) {
      return host == 0 ? output.name.find('/') == std::string::npos
                       : output.name.starts_with(prefix);
    });
    for (auto output : outputs) {
      if (!output.name.starts_with(prefix)) output.name = OutputNameOf(host, output.name);
      record().outputs.push_back(std::move(output));
    }
  }

  // The attempt releases its room.
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

  // Another attempt after `cause`? It uses one of the user's budget, unless the machine was at
  // fault.
  bool TakeRetry(const Cause& cause) {
    const auto& retry = record().spec.retry;
    if (IsInfrastructure(cause)) {
      const bool wanted = retry.max > 0 || record().spec.resources.spot.use ||
                          cause.Is(CauseKind::kPreempted) || LastCheckpoint(record()) != nullptr;
      return wanted && FruitlessLosses(record()) < kMostFruitless;
    }
    if (cause.Is(CauseKind::kOutOfMemory) && !NextType(record()).empty()) return true;
    // A cause that asks for another attempt itself gets one even without `retry`.
    const bool asked = cause.Is(CauseKind::kRuleRetry) ||
                       (cause.Is(CauseKind::kHung) && record().spec.limits.hang_action == "retry");
    if (!asked && !RetryNames(retry, cause, attempt().exit.value_or(ExitInfo{}))) return false;
    if (record().retries >= std::max(retry.max, asked ? 1u : 0u)) return false;
    ++record().retries;
    return true;
  }

  // What the end of the script means, given what was requested.
  Cause CauseOfEnd(Cause cause) const {
    const auto& attempt = *out_.record.current();
    const bool asked = attempt.interrupt.has_value() || out_.record.stop.has_value();
    const ExitInfo exit = attempt.exit.value_or(ExitInfo{});
    if (cause.Is(CauseKind::kCompleted) && asked && exit.notice_ms >= 0 && !exit.done_called) {
      if (out_.record.stop) return out_.record.stop->cause;
      cause = attempt.interrupt->cause;
    }
    // What failed before the interruption was asked for is still the reason.
    if (attempt.interrupt && !attempt.fell && !out_.record.stop &&
        !cause.Is(CauseKind::kCompleted) && !cause.Is(CauseKind::kOutOfMemory) &&
        !cause.Is(CauseKind::kTimeLimit)) {
      std::string how = cause.text;
      cause = attempt.interrupt->cause;
      if (cause.detail.empty()) cause.detail = std::move(how);
    }
    if (cause.Is(CauseKind::kPreempted)) cause.text += "; " + NoticeText(attempt);
    return cause;
  }

  // Ends the attempt, then the job: by the stop that was requested, by another attempt, or as
  // `cause` says.
  Status Finish(const Cause& reported, std::string_view name) {
    const Cause cause = CauseOfEnd(reported);
    EndAttempt(cause);
    if (record().stop && !cause.Is(CauseKind::kCompleted)) {
      Cause why = cause.kind == record().stop->cause.kind ? cause : record().stop->cause;
      if (why.detail.empty()) why.detail = cause.text;
      return Go(Step::kStop, name, why);
    }
    if (cause.Is(CauseKind::kCompleted)) return Go(Step::kComplete, name, cause);
    if (TakeRetry(cause)) {
      attempt().lost_ms = LostMs(attempt());
      ATHANOR_CHECK_OK(Go(Step::kInterrupt, name, cause));
      return Go(Step::kRequeue, "requeued",
                {"backoff", "attempt " + std::to_string(attempt().number) + " ended: " + cause.text,
                 "", ""});
    }
    if (cause.Is(CauseKind::kTimeLimit) || cause.Is(CauseKind::kRuleStop)) {
      return Go(Step::kStop, name, cause);
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
    next.hosts.resize(std::max<size_t>(e.hosts.size(), 1));
    for (uint32_t i = 0; i < next.hosts.size(); ++i) {
      next.hosts[i].name = HostNameOf(i);
      next.hosts[i].placement = e.hosts.empty() ? e.placement : e.hosts[i];
    }
    next.placed = now_;
    next.type = e.type;
    next.micros_per_hour = e.micros_per_hour;
    next.spot = record().spec.resources.spot.use && !record().spot_fell_back;
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
    for (auto& host : attempt().hosts) host.handle = e.handle;
    if (record().cause.Is(CauseKind::kWaitingBackend)) record().cause = {};
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
    return Go(Step::kRequeue, "requeued",
              {"backoff", "could not be started: " + e.cause.text, "", ""});
  }

  Status On(const AgentUp& e) {
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    record().last_seen = host->last_seen = now_;
    if (!e.address.empty()) host->address = e.address;
    if (host->up.ms != 0) return Ok();  // it came back
    host->up = now_;
    host->cause = {};
    if (record().state == JobState::kPlacing) {
      attempt().prepared = now_;
      return GoOn(Step::kPrepare, "agent_up", e.host);
    }
    Note("agent_up", OnHost(e.host, {}));
    return Ok();
  }

  Status On(const PrepareFailed& e) {
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    if (host->up.ms == 0 || host->started.ms != 0 || host->over.ms != 0) return Ok();  // said twice
    host->over = now_;
    host->cause = e.cause;
    Fall(e.host, std::nullopt, e.cause);
    return AfterHost("prepare_failed", OnHost(e.host, e.cause));
  }

  Status On(const ScriptStarted& e) {
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    if (host->up.ms == 0 || host->started.ms != 0 || host->over.ms != 0) return Ok();
    host->started = now_;
    attempt().setup_ms = std::max(attempt().setup_ms, e.setup_ms);
    for (const auto& off : e.off) {
      auto& all = attempt().off;
      if (std::ranges::find(all, off) == all.end()) all.push_back(off);
    }
    if (record().state == JobState::kPreparing) {
      attempt().started = now_;
      return GoOn(Step::kStart, "script_started", e.host);
    }
    Note("script_started", OnHost(e.host, {}));
    return Ok();
  }

  Status On(const ScriptEnded& e) {
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    if (host->started.ms == 0 || host->exited.ms != 0 || host->over.ms != 0) return Ok();
    host->exited = now_;
    host->exit = e.exit;
    host->cause = e.cause;
    host->ranks = e.ranks;
    // If nothing is left of a host, nobody knows which of its ranks it was.
    const bool gone = e.cause.Is(CauseKind::kAgentLost);
    const auto rank = gone ? std::nullopt : FirstFallen(e.host, e.ranks);
    if (!e.cause.Is(CauseKind::kCompleted)) Fall(e.host, rank, e.cause);
    return AfterHost("script_ended", OnHost(e.host, e.cause));
  }

  Status On(const Uploaded& e) {
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    if (host->exited.ms == 0 || host->over.ms != 0) return Ok();
    host->over = now_;
    // If it could store nothing, what earlier attempts stored remains.
    if (e.failure.kind.empty() || !e.outputs.empty()) KeepOutputs(e.host, e.outputs);
    if (e.host == 0) record().packages = e.packages;
    // A script that succeeded but whose outputs are lost did not succeed for its owner.
    if (!e.failure.kind.empty() && host->cause.Is(CauseKind::kCompleted)) host->cause = e.failure;
    return AfterHost(AllHostsAreOver() ? "ended" : "uploaded", OnHost(e.host, host->cause));
  }

  Status On(const HostLost& e) {
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    if (host->over.ms != 0) return Ok();
    host->over = now_;
    host->cause = e.cause;
    Fall(e.host, std::nullopt, e.cause);
    return AfterHost("host_lost", OnHost(e.host, e.cause));
  }

  Status On(const StopAsked& e) {
    if (IsTerminal(record().state)) {
      return Fail(Error{ErrorCode::kConflict,
                        "the job is already " + std::string(NameOf(record().state)),
                        "ath retry " + ShellQuote(record().spec.name)}
                      .Id("ATH-R0006"));
    }
    if (record().stop) {
      if (e.grace >= record().stop->grace) return Ok();  // asked twice, done once
      // A caller that asked with a long grace may lose patience.
      record().stop->grace = e.grace;
      Note("stop_hastened",
           {e.cause.kind,
            e.grace.count() == 0 ? "is ended at once, without the rest of its grace time"
                                 : "has only " + HumanDuration(e.grace) + " left to end",
            "", ""});
      Do(EffectKind::kStop);
      return Ok();
    }
    record().stop = StopRequest{e.cause, e.who, now_, e.grace};
    if (!HoldsRoom(record().state)) return Go(Step::kStop, "stop_asked", e.cause);
    Note("stop_asked", e.cause);
    Do(EffectKind::kStop);
    return Ok();
  }

  Status On(const InterruptAsked& e) {
    if (!HoldsRoom(record().state)) {
      return Fail(Error{ErrorCode::kConflict,
                        "the job is " + std::string(NameOf(record().state)) +
                            ": it holds no machine that could be taken away",
                        "ath why " + ShellQuote(record().spec.name)}
                      .Id("ATH-R0009"));
    }
    if (attempt().interrupt || record().stop) return Ok();  // it is going already
    attempt().interrupt = StopRequest{e.cause, e.who, now_, e.grace};
    Note("interrupt_asked", e.cause);
    Do(EffectKind::kStop);
    return Ok();
  }

  Status On(const Resumed& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    // The first host that says so; another may have started its ranks already.
    const bool starting = record().state == JobState::kPreparing ||
                          (record().state == JobState::kRunning && IsGang());
    if (!starting || !attempt().resumed_from.empty()) return Ok();
    if (e.checkpoint.empty()) return Ok();
    attempt().resumed_from = e.checkpoint;
    attempt().resumed_step = e.step;
    Note("resumed", {"resumed",
                     "goes on from checkpoint " + e.checkpoint +
                         (e.step ? ", step " + std::to_string(*e.step) : std::string()),
                     "", ""});
    return Ok();
  }

  Status On(const CheckpointKept& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    record().advice = e.advice;
    // Reported again after a lost reply: the same one.
    if (attempt().saved && attempt().saved->id == e.checkpoint.id) return Ok();
    attempt().saved = e.checkpoint;
    Note("checkpoint", {"checkpoint",
                        (e.checkpoint.step ? "step " + std::to_string(*e.checkpoint.step) + ", "
                                           : std::string()) +
                            HumanBytes(e.checkpoint.bytes) + " kept (" +
                            HumanBytes(e.checkpoint.new_bytes) + " new)",
                        "", ""});
    return Ok();
  }

  Status On(const RuleFired& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    const auto& f = e.firing;
    for (const auto& known : record().firings) {
      if (known.rule == f.rule && known.metric == f.metric && known.step == f.step) return Ok();
    }
    if (record().firings.size() < kMostFirings) record().firings.push_back(f);
    Note("rule_fired", {"rule_fired",
                        f.rule + " on " + f.metric +
                            (f.step ? " at step " + std::to_string(*f.step) : std::string()) +
                            ": " + f.value + " (limit " + f.threshold + "); " + f.action,
                        "", f.advice});
    return Ok();
  }

  Status On(const WaitedTooLong&) {
    if (IsTerminal(record().state)) return Fail(ErrorCode::kConflict, "the job is over");
    if (record().spot_fell_back || record().stop) return Ok();
    const auto& spot = record().spec.resources.spot;
    const std::string limit = HumanDuration(spot.max_wait);
    if (spot.fallback) {
      record().spot_fell_back = true;
      Note("fell_back",
           {"max_wait",
            "waited and ran for " + limit + ": goes on as an ordinary job, at its price", "", ""});
      return Ok();
    }
    return On(StopAsked{{"max_wait", "waiting and running took longer than max_wait, " + limit,
                         "raise resources.spot.max_wait, or set resources.spot.fallback", ""},
                        "athanor",
                        record().spec.limits.stop_grace});
  }

  Status On(const Noted& e) {
    ATHANOR_CHECK_OK(CheckAttempt(e.attempt));
    ATHANOR_TRY(auto* host, HostOf(e.attempt, e.host));
    // While something holds a running script up, on any host, that is the job's reason.
    if (e.cause.Is(CauseKind::kWaitingDisk) || e.cause.Is(CauseKind::kDiskRoom)) {
      const bool begins = e.cause.Is(CauseKind::kWaitingDisk);
      const bool known = host->cause.Is(CauseKind::kWaitingDisk);
      if (record().state != JobState::kRunning || begins == known) return Ok();
      host->cause = begins ? e.cause : Cause{};
      if (begins || record().cause.Is(CauseKind::kWaitingDisk)) record().cause = WaitOfDisk();
    }
    Note("noted", OnHost(e.host, e.cause));
    return Ok();
  }

  // That of the first host that waits for its disk; empty: none does.
  Cause WaitOfDisk() {
    const auto& hosts = attempt().hosts;
    for (uint32_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].cause.Is(CauseKind::kWaitingDisk)) return OnHost(i, hosts[i].cause);
    }
    return {};
  }

  Outcome out_;
  WallTime now_;
};

}  // namespace

Result<Outcome> Decide(JobRecord record, const JobEvent& event, WallTime now) {
  return Decider(std::move(record), now).Run(event);
}

}  // namespace athanor
