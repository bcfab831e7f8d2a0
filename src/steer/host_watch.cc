#include "steer/host_watch.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "steer/decide.h"

namespace athanor {
namespace {

// An agent needs a moment to take its lock before its absence means anything.
constexpr Millis kSettle{3'000};

std::string Retry(const JobRecord& record) { return "ath retry " + ShellQuote(record.spec.name); }

bool IsGang(const JobRecord& record) { return record.current()->hosts.size() > 1; }

// "algo-2 and algo-3", "algo-2, algo-3 and 2 more"
std::string NamesOf(const std::vector<uint32_t>& hosts) {
  constexpr size_t kShown = 3;
  std::vector<std::string> names;
  for (const auto host : hosts) {
    if (names.size() < kShown) names.push_back(HostNameOf(host));
  }
  if (hosts.size() > kShown) {
    return Join(names, ", ") + " and " + std::to_string(hosts.size() - kShown) + " more";
  }
  if (names.size() < 2) return names.front();
  const std::string last = names.back();
  names.pop_back();
  return Join(names, ", ") + " and " + last;
}

// What an exit that only the back end saw means.
Cause CauseOf(const ExitInfo& exit, const std::string& detail) {
  if (exit.oom_killed) return {"out_of_memory", "killed for its use of memory", "", detail};
  if (exit.signal != 0)
    return {"signal", "ended by signal " + std::to_string(exit.signal), "", detail};
  if (exit.code > 0)
    return {"nonzero_exit", "exit status " + std::to_string(exit.code), "", detail};
  return {"agent_lost", "it ended, and what it wrote was not stored", "", detail};
}

}  // namespace

HostWatch::HostWatch(Parts parts) : parts_(std::move(parts)) {
  for (const auto& entry : parts_.backends.all()) {
    pools_[entry.name()] = parts_.make_pool(entry.name(), 1);
  }
}

HostWatch::~HostWatch() = default;

void HostWatch::Stop() {
  stopped_ = true;
  for (auto& [backend, pool] : pools_) pool->Stop();
}

JobRecord* HostWatch::Current(AttemptId attempt) const {
  const auto at = parts_.attempts.find(attempt);
  if (at == parts_.attempts.end()) return nullptr;
  auto* record = parts_.live(at->second.job);
  const bool is = record && HoldsRoom(record->state) && record->current()->id == attempt;
  return is ? record : nullptr;
}

void HostWatch::Look() {
  if (stopped_) return;
  const auto now = parts_.clock.Monotonic();
  std::map<std::string, std::vector<Asked>> ask;
  std::vector<AttemptId> all;
  for (const auto* record : parts_.holding()) {
    const auto& attempt = *record->current();
    all.push_back(attempt.id);
    const auto& live = parts_.attempts[attempt.id];
    const bool settling = live.launched && now - *live.launched < kSettle;
    if (attempt.handle.empty() || settling || live.giving_up) continue;
    ask[attempt.placement.backend].push_back({attempt.id, attempt.handle});
  }
  for (const auto& entry : parts_.backends.all()) {
    auto& asked = ask[entry.name()];
    if (asked.empty() || !asking_.insert(entry.name()).second) continue;
    Ask(entry, std::move(asked));
  }
  for (const auto attempt : all) {
    if (const auto* record = Current(attempt)) LookForMissing(*record);
  }
}

void HostWatch::Ask(const Backends::Entry& at, std::vector<Asked> asked) {
  const auto since = parts_.clock.Monotonic();
  const bool taken = pools_.at(at.name())->Submit(
      [this, name = at.name(), backend = &at.backend, since, asked = std::move(asked)] {
        std::vector<std::string> handles;
        for (const auto& one : asked) handles.push_back(one.handle);
        auto answers = backend->Poll(handles);
        parts_.executor.Post([this, name, since, asked, answers = std::move(answers)] {
          asking_.erase(name);
          for (size_t i = 0; i < asked.size() && i < answers.size() && !stopped_; ++i) {
            Answered(asked[i], since, answers[i]);
          }
        });
      });
  (void)taken;
}

void HostWatch::Answered(const Asked& asked, Millis since,
                         const Result<std::vector<HostStatus>>& hosts) {
  auto* record = Current(asked.attempt);
  if (record == nullptr) return;
  const auto& live = parts_.attempts[asked.attempt];
  // An answer of before its agents were started says nothing about them.
  if (live.giving_up || (live.launched && *live.launched >= since)) return;
  if (!hosts && hosts.error().code != ErrorCode::kNotFound) return;  // silence is not death
  std::vector<uint32_t> agents_gone;
  const auto count = static_cast<uint32_t>(record->current()->hosts.size());
  for (uint32_t i = 0; i < count; ++i) {
    record = Current(asked.attempt);
    if (record == nullptr || parts_.attempts[asked.attempt].giving_up) return;
    HostStatus status{HostStatus::State::kGone, hosts ? "" : hosts.error().what, {}, {}};
    if (hosts && i >= hosts->size()) continue;
    if (hosts) status = (*hosts)[i];
    if (record->current()->hosts[i].over.ms == 0) HostIs(*record, i, status, agents_gone);
  }
  record = Current(asked.attempt);
  if (!record || agents_gone.empty() || parts_.attempts[asked.attempt].giving_up) return;
  parts_.outbox.Relaunch(*record, agents_gone);
}

void HostWatch::HostIs(JobRecord& record, uint32_t index, const HostStatus& status,
                       std::vector<uint32_t>& agents_gone) {
  const auto attempt = record.current()->id;
  switch (status.state) {
    case HostStatus::State::kAlive:
      return Starts(record, record.current()->hosts[index]);
    case HostStatus::State::kPending:
      return Waits(record, record.current()->hosts[index], status);
    case HostStatus::State::kEvicted:
      return Evicted(record, index, status);
    case HostStatus::State::kEnded:
      return Ended(record, index, status);
    case HostStatus::State::kGone:
      return parts_.apply(
          record.id, HostLost{attempt, {"agent_lost", status.detail, Retry(record), ""}, index});
    case HostStatus::State::kAgentGone:
      break;
  }
  if (parts_.attempts[attempt].agent(index).Another()) {
    parts_.log.Log(
        LogLevel::kWarning, "agent gone, starting another",
        {{"job", record.id.ToString()}, {"host", HostNameOf(index)}, {"why", status.detail}});
    agents_gone.push_back(index);
    return;
  }
  // Its script may still run: it is given up when the back end says that nothing of it runs.
  GiveUp(record, index, {"agent_lost", status.detail, Retry(record), ""});
}

void HostWatch::Waits(JobRecord& record, Host& host, const HostStatus& status) {
  const Cause cause{"waiting_backend", "its back end says: " + status.detail,
                    "ath why " + ShellQuote(record.spec.name), ""};
  if (host.cause == cause || host.up.ms != 0) return;
  host.cause = cause;
  if (record.state == JobState::kPlacing) record.cause = cause;
  parts_.tell(record);
}

// What it waited for has come.
void HostWatch::Starts(JobRecord& record, Host& host) {
  if (!host.cause.Is(CauseKind::kWaitingBackend)) return;
  host.cause = {};
  if (record.cause.Is(CauseKind::kWaitingBackend)) record.cause = {};
  parts_.tell(record);
}

void HostWatch::Evicted(const JobRecord& record, uint32_t index, const HostStatus& status) {
  if (record.stop || record.current()->interrupt) return;
  auto grace = record.spec.limits.stop_grace;
  if (status.deadline) {
    const auto left = status.deadline->ms - parts_.clock.Wall().ms;
    grace = std::clamp(Millis(left), Millis(0), grace);
  }
  const std::string whose = IsGang(record) ? HostNameOf(index) : "its machine";
  parts_.apply(record.id, InterruptAsked{{"preempted", whose + " is taken away: " + status.detail,
                                          "ath show " + ShellQuote(record.spec.name), ""},
                                         "athanor",
                                         grace});
}

void HostWatch::Ended(const JobRecord& record, uint32_t index, const HostStatus& status) {
  const JobId job = record.id;
  const auto attempt = record.current()->id;
  const auto& host = record.current()->hosts[index];
  const Cause cause = CauseOf(status.exit.value_or(ExitInfo{}), status.detail);
  const bool ran = host.started.ms != 0 && host.exited.ms == 0;
  if (ran && status.exit && !cause.Is(CauseKind::kAgentLost)) {
    parts_.apply(job, ScriptEnded{attempt, *status.exit, cause, index, {}});
  }
  parts_.apply(job, HostLost{attempt, cause, index});
}

void HostWatch::LookForMissing(const JobRecord& record) {
  const auto now = parts_.clock.Monotonic();
  const auto& attempt = *record.current();
  auto& live = parts_.attempts[attempt.id];
  std::vector<uint32_t> missing;
  bool some_up = false, some_left = false;
  for (uint32_t i = 0; i < attempt.hosts.size(); ++i) {
    const auto& host = attempt.hosts[i];
    some_up = some_up || host.up.ms != 0;
    some_left = some_left || (host.up.ms != 0 && host.over.ms == 0);
    if (host.up.ms == 0 && host.over.ms == 0) missing.push_back(i);
  }
  // Once it is to end, and those that can hear it have ended, nobody waits for the rest.
  const bool to_end = record.stop || attempt.interrupt || attempt.fell;
  const bool alone = to_end && !some_left;
  if (missing.empty() || !(some_up || alone)) {
    live.some_up.reset();
    return live.alone.reset();
  }
  if (some_up && !live.some_up) live.some_up = now;
  if (!alone) live.alone.reset();
  if (alone && !live.alone) live.alone = now;
  if (live.giving_up) return;
  const auto host = missing.front();
  if (alone && now - *live.alone > kEndPatience) {
    return GiveUp(record, host,
                  {"host_missing", NamesOf(missing) + " had not come up when it was to end",
                   Retry(record), attempt.hosts[host].cause.text});
  }
  if (!live.some_up || now - *live.some_up <= kGangPatience) return;
  GiveUp(record, host,
         {"host_missing",
          NamesOf(missing) + " did not come up within " + HumanDuration(kGangPatience) +
              " of the first host",
          Retry(record), attempt.hosts[host].cause.text});
}

void HostWatch::GiveUp(const JobRecord& record, uint32_t host, const Cause& cause) {
  const auto attempt = record.current()->id;
  parts_.attempts[attempt].giving_up = true;
  const auto lost = [this, attempt, host, cause] {
    const Cause with_it{CauseKind::kPeerFailed,
                        "ended with its attempt, because of " + HostNameOf(host), "", ""};
    const auto* live = Current(attempt);
    if (live == nullptr) return;
    const JobId job = live->id;
    const auto hosts = static_cast<uint32_t>(live->current()->hosts.size());
    // It first, so that the end is its own. A stop that was asked for does not change with whom.
    parts_.apply(job, HostLost{attempt, cause, host});
    for (uint32_t i = 0; i < hosts; ++i) {
      if (i != host) parts_.apply(job, HostLost{attempt, with_it, i});
    }
  };
  // Without an answer, something of it may run: it is looked at again.
  parts_.outbox.End(record, lost, [this, attempt] {
    const auto at = parts_.attempts.find(attempt);
    if (at != parts_.attempts.end()) at->second.giving_up = false;
  });
}

}  // namespace athanor
