#include "launch/fake_backend.h"

#include <algorithm>
#include <utility>

#include "base/exec/mutex.h"

namespace athanor {
namespace {

tl::unexpected<Error> Unanswered() {
  return Fail(ErrorCode::kUnavailable, "the host did not answer");
}

}  // namespace

FakeBackend::FakeBackend(size_t machines, World world, std::string name)
    : name_(std::move(name)), world_(std::move(world)), machines_(machines) {}

void FakeBackend::SetFates(std::function<Fate(Call)> fates) { fates_ = std::move(fates); }

FakeBackend::Fate FakeBackend::Ask(Call call) const { return fates_ ? fates_(call) : Fate::kDone; }

FakeBackend::Known FakeBackend::Emptiest(size_t hosts) {
  Known chosen;
  std::vector<size_t> added(machines_.size());
  while (chosen.size() < hosts) {
    std::optional<size_t> best;
    for (size_t i = 0; i < machines_.size(); ++i) {
      if (!machines_[i].up || !machines_[i].reachable) continue;
      if (!best || machines_[i].hosts + added[i] < machines_[*best].hosts + added[*best]) best = i;
    }
    if (!best) return {};
    ++added[*best];
    chosen.push_back({*best, false, false, {}});
  }
  return chosen;
}

Result<std::string> FakeBackend::Launch(const LaunchPlan& plan) {
  const auto fate = Ask(Call::kLaunch);
  if (fate == Fate::kRequestLost) return Unanswered();
  const auto handle = plan.attempt().ToString();
  std::vector<std::pair<const AttemptPlan*, size_t>> starts;
  bool silent = false;
  {
    MutexLock lock(mutex_);
    auto known = attempts_.find(handle);
    if (known == attempts_.end()) {
      const bool refused = fate == Fate::kRefused ||
                           (world_.refused && std::ranges::any_of(plan.hosts, world_.refused));
      if (refused) return Fail(ErrorCode::kExhausted, "no host has room");
      auto chosen = Emptiest(plan.hosts.size());
      if (chosen.empty()) return Fail(ErrorCode::kExhausted, "no host is up");
      for (const auto& host : chosen) ++machines_[host.machine].hosts;
      known = attempts_.emplace(handle, std::move(chosen)).first;
    }
    for (size_t i = 0; i < plan.hosts.size(); ++i) {
      auto& host = known->second[i];
      // What is gone stays gone: it was launched, and Poll reports the rest.
      if (host.gone || plan.IsOver(i)) continue;
      if (!Answers(host)) {
        silent = true;
      } else if (!std::exchange(host.agent, true)) {
        starts.emplace_back(&plan.hosts[i], host.machine);
      }
    }
  }
  for (const auto& [host, machine] : starts) {
    if (world_.agent_started) world_.agent_started(*host, machine);
  }
  if (silent || fate == Fate::kReplyLost) return Unanswered();
  return handle;
}

std::vector<Result<std::vector<HostStatus>>> FakeBackend::Poll(
    const std::vector<std::string>& handles) {
  std::vector<Result<std::vector<HostStatus>>> all;
  for (const auto& handle : handles) all.push_back(PollOne(handle));
  return all;
}

Result<std::vector<HostStatus>> FakeBackend::PollOne(const std::string& handle) {
  if (Ask(Call::kPoll) != Fate::kDone) return Unanswered();
  MutexLock lock(mutex_);
  const auto known = attempts_.find(handle);
  if (known == attempts_.end()) return Fail(ErrorCode::kNotFound, "no attempt " + handle);
  std::vector<HostStatus> all;
  for (const auto& host : known->second) {
    if (!Answers(host)) return Unanswered();
    if (host.gone) {
      all.push_back({HostStatus::State::kGone, "the host was lost", {}, {}});
    } else if (host.agent) {
      all.push_back(host.says);
    } else {
      all.push_back({HostStatus::State::kAgentGone, "the agent died", {}, {}});
    }
  }
  return all;
}

Status FakeBackend::Release(const std::string& handle) {
  const auto fate = Ask(Call::kRelease);
  if (fate == Fate::kRequestLost || fate == Fate::kRefused) return Unanswered();
  const auto attempt = AttemptId::Parse(handle);
  if (!attempt) return Fail(ErrorCode::kInvalid, "not a handle of the fake back end: " + handle);
  std::vector<uint32_t> ended;
  bool silent = false;
  {
    MutexLock lock(mutex_);
    const auto known = attempts_.find(handle);
    if (known == attempts_.end()) return Ok();
    for (uint32_t i = 0; i < known->second.size(); ++i) {
      auto& host = known->second[i];
      if (!Answers(host)) {
        silent = true;
        continue;
      }
      if (!std::exchange(host.gone, true)) --machines_[host.machine].hosts;
      ended.push_back(i);
    }
    if (!silent) attempts_.erase(known);
  }
  for (const auto host : ended) {
    if (world_.ended) world_.ended(*attempt, host);
  }
  if (silent || fate == Fate::kReplyLost) return Unanswered();
  return Ok();
}

void FakeBackend::SetStatus(AttemptId attempt, uint32_t host, HostStatus status) {
  MutexLock lock(mutex_);
  attempts_.at(attempt.ToString()).at(host).says = std::move(status);
}

void FakeBackend::AgentEnded(AttemptId attempt, uint32_t host) {
  MutexLock lock(mutex_);
  if (const auto at = attempts_.find(attempt.ToString()); at != attempts_.end()) {
    at->second.at(host).agent = false;
  }
}

void FakeBackend::CrashMachine(size_t machine) {
  MutexLock lock(mutex_);
  machines_[machine].up = false;
  machines_[machine].hosts = 0;
  for (auto& [handle, known] : attempts_) {
    for (auto& host : known) host.gone = host.gone || host.machine == machine;
  }
}

void FakeBackend::RestoreMachine(size_t machine) {
  MutexLock lock(mutex_);
  machines_[machine].up = true;
}

void FakeBackend::Reach(size_t machine, bool reachable) {
  MutexLock lock(mutex_);
  machines_[machine].reachable = reachable;
}

std::optional<size_t> FakeBackend::MachineOf(AttemptId attempt, uint32_t host) const {
  MutexLock lock(mutex_);
  const auto at = attempts_.find(attempt.ToString());
  if (at == attempts_.end() || host >= at->second.size()) return std::nullopt;
  return at->second[host].machine;
}

bool FakeBackend::up(size_t machine) const {
  MutexLock lock(mutex_);
  return machines_[machine].up;
}

}  // namespace athanor
