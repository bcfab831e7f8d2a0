#include "launch/fake_backend.h"

#include <utility>

namespace athanor {
namespace {

tl::unexpected<Error> Unanswered() {
  return Fail(ErrorCode::kUnavailable, "the host did not answer");
}

}  // namespace

FakeBackend::FakeBackend(size_t hosts, World world) : world_(std::move(world)), hosts_(hosts) {}

void FakeBackend::SetFates(std::function<Fate(Call)> fates) { fates_ = std::move(fates); }

FakeBackend::Fate FakeBackend::Ask(Call call) const { return fates_ ? fates_(call) : Fate::kDone; }

std::optional<size_t> FakeBackend::EmptiestHost() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (!hosts_[i].up || !hosts_[i].reachable) continue;
    if (!best || hosts_[i].attempts < hosts_[*best].attempts) best = i;
  }
  return best;
}

Result<std::string> FakeBackend::Launch(const LaunchPlan& attempt) {
  const auto& plan = attempt.hosts.front();
  const auto fate = Ask(Call::kLaunch);
  if (fate == Fate::kRequestLost) return Unanswered();
  const auto handle = plan.attempt.ToString();
  bool starts = false;
  size_t host = 0;
  {
    std::lock_guard lock(mutex_);
    auto known = attempts_.find(handle);
    if (known == attempts_.end()) {
      if (fate == Fate::kRefused) return Fail(ErrorCode::kExhausted, "no host has room");
      const auto free = EmptiestHost();
      if (!free) return Fail(ErrorCode::kExhausted, "no host is up");
      known = attempts_.emplace(handle, Known{*free, false, false}).first;
      ++hosts_[*free].attempts;
    }
    host = known->second.host;
    if (!known->second.gone && !hosts_[host].reachable) return Unanswered();
    // What is gone stays gone: it was launched, and Poll reports the rest.
    starts = !known->second.gone && !std::exchange(known->second.agent, true);
  }
  if (starts && world_.agent_started) world_.agent_started(plan, host);
  if (fate == Fate::kReplyLost) return Unanswered();
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
  std::lock_guard lock(mutex_);
  const auto known = attempts_.find(handle);
  if (known == attempts_.end()) return Fail(ErrorCode::kNotFound, "no attempt " + handle);
  if (known->second.gone) {
    return std::vector<HostStatus>{{HostStatus::State::kGone, "the host was lost"}};
  }
  if (!hosts_[known->second.host].reachable) return Unanswered();
  if (known->second.agent) return std::vector<HostStatus>{{HostStatus::State::kAlive, ""}};
  return std::vector<HostStatus>{{HostStatus::State::kAgentGone, "the agent died"}};
}

Status FakeBackend::Release(const std::string& handle) {
  const auto fate = Ask(Call::kRelease);
  if (fate == Fate::kRequestLost || fate == Fate::kRefused) return Unanswered();
  const auto attempt = AttemptId::Parse(handle);
  if (!attempt) return Fail(ErrorCode::kInvalid, "not a handle of the fake back end: " + handle);
  {
    std::lock_guard lock(mutex_);
    const auto known = attempts_.find(handle);
    if (known == attempts_.end()) return Ok();
    auto& host = hosts_[known->second.host];
    if (!known->second.gone && !host.reachable) return Unanswered();
    if (!known->second.gone) --host.attempts;
    attempts_.erase(known);
  }
  if (world_.ended) world_.ended(*attempt);
  if (fate == Fate::kReplyLost) return Unanswered();
  return Ok();
}

void FakeBackend::AgentEnded(AttemptId attempt) {
  std::lock_guard lock(mutex_);
  if (const auto at = attempts_.find(attempt.ToString()); at != attempts_.end()) {
    at->second.agent = false;
  }
}

void FakeBackend::CrashHost(size_t host) {
  std::lock_guard lock(mutex_);
  hosts_[host].up = false;
  hosts_[host].attempts = 0;
  for (auto& [handle, known] : attempts_) {
    if (known.host == host) known.gone = true;
  }
}

void FakeBackend::RestoreHost(size_t host) {
  std::lock_guard lock(mutex_);
  hosts_[host].up = true;
}

void FakeBackend::Reach(size_t host, bool reachable) {
  std::lock_guard lock(mutex_);
  hosts_[host].reachable = reachable;
}

std::optional<size_t> FakeBackend::HostOf(AttemptId attempt) const {
  std::lock_guard lock(mutex_);
  const auto at = attempts_.find(attempt.ToString());
  if (at == attempts_.end()) return std::nullopt;
  return at->second.host;
}

bool FakeBackend::up(size_t host) const {
  std::lock_guard lock(mutex_);
  return hosts_[host].up;
}

}  // namespace athanor
