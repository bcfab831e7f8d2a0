#include "steer/outbox.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace athanor {
namespace {

constexpr size_t kCallsAtOnce = 4;  // of one back end
constexpr Millis kRepeatAfter{3'000};

const Attempt* Find(const JobRecord* record, AttemptId id) {
  if (record == nullptr) return nullptr;
  for (const auto& attempt : record->attempts) {
    if (attempt.id == id) return &attempt;
  }
  return nullptr;
}

std::string HandleOf(const Attempt& attempt) {
  return attempt.handle.empty() ? attempt.id.ToString() : attempt.handle;
}

}  // namespace

Outbox::Outbox(Parts parts) : parts_(std::move(parts)) {
  for (const auto& entry : parts_.backends.all()) {
    pools_[entry.name()] = {parts_.make_pool(entry.name(), kCallsAtOnce),
                            parts_.make_pool(entry.name(), kCallsAtOnce)};
  }
}

Outbox::~Outbox() = default;

void Outbox::Stop() {
  stopped_ = true;
  for (auto& [backend, pools] : pools_) {
    pools.starts->Stop();
    pools.ends->Stop();
  }
}

void Outbox::Add(JobId job, Work work) {
  auto& lane = lanes_[job];
  lane.push_back(std::move(work));
  if (lane.size() == 1) RunFirst(job);
}

bool Outbox::IsWanted(const Launching& launching) const {
  const auto* live = parts_.live(launching.job);
  return live && HoldsRoom(live->state) && live->current()->id == launching.attempt;
}

void Outbox::RunFirst(JobId job) {
  auto& lane = lanes_.at(job);
  while (!lane.empty() && lane.front().launching && !IsWanted(*lane.front().launching)) {
    const auto effect = lane.front().launching->effect;
    lane.pop_front();
    if (effect != 0) parts_.performed(effect);
  }
  if (lane.empty()) {
    lanes_.erase(job);
    return parts_.flush();
  }
  const auto& work = lane.front();
  const auto& pools = pools_.at(work.backend);
  auto& pool = work.kind == Kind::kStart ? *pools.starts : *pools.ends;
  const bool taken = pool.Submit([this, job, call = work.call] {
    auto after = call();
    parts_.executor.Post([this, job, after = std::move(after)] { Answered(job, after); });
  });
  (void)taken;  // stopping: the store keeps it
}

// What it came to is known before the next call of the job begins: that may not be wanted any more.
void Outbox::Answered(JobId job, const After& after) {
  if (const auto again = after()) {
    parts_.executor.After(*again, [this, job] {
      if (!stopped_) RunFirst(job);
    });
    return;
  }
  lanes_.at(job).pop_front();
  RunFirst(job);
}

void Outbox::Perform(const Effect& effect) {
  const auto* live = parts_.live(effect.job);
  switch (effect.kind) {
    case EffectKind::kLaunch:
      // Its agents may have started before the handle was stored: launching it again makes it
      // known.
      if (!live || !HoldsRoom(live->state) || live->current()->id != effect.attempt) {
        return Performed(effect.id);
      }
      return Launch(*live, &effect);
    case EffectKind::kStop:
      // The door passes the stop to the agents when they ask; the record contains it.
      if (live) parts_.tell(*live);
      return Performed(effect.id);
    case EffectKind::kRelease:
      return Release(effect);
  }
}

void Outbox::PerformLater(const Effect& effect) {
  parts_.executor.After(kRepeatAfter, [this, effect] {
    if (!stopped_) Perform(effect);
  });
}

void Outbox::Performed(uint64_t effect) {
  parts_.performed(effect);
  parts_.flush();
}

void Outbox::Release(const Effect& effect) {
  // Of an attempt that is not known any more, every back end is asked; those that never had it
  // agree.
  std::vector<std::string> at;
  std::string handle = effect.attempt.ToString();
  const auto* live = parts_.live(effect.job);
  const auto stored = live ? std::nullopt : parts_.stored(effect.job);
  if (const auto* attempt = Find(stored ? &*stored : live, effect.attempt)) {
    at.push_back(attempt->placement.backend);
    handle = HandleOf(*attempt);
  } else {
    for (const auto& entry : parts_.backends.all()) at.push_back(entry.name());
  }
  auto left = std::make_shared<size_t>(at.size());
  for (const auto& name : at) {
    auto* backend = parts_.backends.Find(name);
    if (backend == nullptr) {
      parts_.log.Log(LogLevel::kWarning, "an attempt is left at a back end that is not set up now",
                     {{"backend", name}, {"attempt", effect.attempt.ToString()}});
      continue;
    }
    auto call = [this, backend, handle, effect, left]() -> After {
      auto status = backend->Release(handle);
      return [this, status, effect, left]() -> std::optional<Millis> {
        if (!status) {
          LogReleaseFailed(status.error());
          // Something of it may run.
          if (status.error().code != ErrorCode::kInvalid) return kRepeatAfter;
        }
        if (--*left == 0) Performed(effect.id);
        return std::nullopt;
      };
    };
    Add(effect.job, {Kind::kEnd, name, std::move(call)});
  }
}

void Outbox::LogReleaseFailed(const Error& error) {
  parts_.log.Log(LogLevel::kWarning, "release failed", {{"what", error.what}, {"why", error.why}});
}

void Outbox::End(const JobRecord& record, std::function<void()> ended,
                 std::function<void()> failed) {
  const auto& attempt = *record.current();
  auto* backend = parts_.backends.Find(attempt.placement.backend);
  if (backend == nullptr) return failed();
  auto call = [this, backend, handle = HandleOf(attempt), ended = std::move(ended),
               failed = std::move(failed)]() -> After {
    const auto status = backend->Release(handle);
    return [this, status, ended, failed]() -> std::optional<Millis> {
      if (!status) LogReleaseFailed(status.error());
      status ? ended() : failed();
      return std::nullopt;
    };
  };
  Add(record.id, {Kind::kEnd, attempt.placement.backend, std::move(call)});
}

void Outbox::Relaunch(const JobRecord& record, const std::vector<uint32_t>& hosts) {
  parts_.starting(record, hosts);
  Launch(record, nullptr);
}

void Outbox::Launch(const JobRecord& record, const Effect* effect) {
  const Launching launching{record.id, record.current()->id, effect ? effect->id : 0};
  auto made = parts_.plan(record);
  if (!made) return LaunchAnswered(launching, tl::unexpected(made.error()));
  auto plan = std::make_shared<LaunchPlan>(std::move(*made));
  for (const auto& host : record.current()->hosts) plan->over.push_back(host.over.ms != 0);
  const std::string name = record.current()->placement.backend;
  if (effect) {
    std::vector<uint32_t> all(plan->hosts.size());
    std::iota(all.begin(), all.end(), 0u);
    parts_.starting(record, all);
  }
  auto* backend = parts_.backends.Find(name);
  if (backend == nullptr) {
    return LaunchAnswered(launching,
                          Fail(ErrorCode::kInvalid, "the back end '" + name + "' is not set up",
                               "ath retry " + record.id.ToString()));
  }
  auto call = [this, plan, launching, backend]() -> After {
    auto handle = backend->Launch(*plan);
    return [this, launching, handle]() -> std::optional<Millis> {
      LaunchAnswered(launching, handle);
      return std::nullopt;
    };
  };
  Add(record.id, {Kind::kStart, name, std::move(call), launching});
}

void Outbox::LaunchAnswered(const Launching& of, const Result<std::string>& handle) {
  // Without an answer it may still run, and an attempt whose agents are known, or lost them, does
  // run: none is replaced, all are launched again.
  const auto* live = IsWanted(of) ? parts_.live(of.job) : nullptr;
  const bool runs = live && std::ranges::any_of(live->current()->hosts,
                                                [](const Host& host) { return host.up.ms != 0; });
  if (!handle && (of.effect == 0 || runs || handle.error().code == ErrorCode::kUnavailable)) {
    parts_.log.Log(LogLevel::kWarning, "launch failed, asked for again",
                   {{"attempt", of.attempt.ToString()},
                    {"what", handle.error().what},
                    {"why", handle.error().why}});
    if (live && !runs) {
      parts_.waits(of.job, {CauseKind::kWaitingBackend,
                            "its back end cannot start it now: " + handle.error().what,
                            handle.error().hint, handle.error().why});
    }
    if (of.effect != 0) PerformLater({of.effect, EffectKind::kLaunch, of.job, of.attempt});
    return;
  }
  if (of.effect != 0) parts_.performed(of.effect);
  if (handle) {
    parts_.apply(of.job, Launched{of.attempt, *handle});
  } else {
    Cause cause{"launch_failed", handle.error().what, handle.error().hint, handle.error().why};
    parts_.apply(of.job,
                 LaunchFailed{of.attempt, cause, handle.error().code == ErrorCode::kInvalid});
  }
  parts_.flush();
}

}  // namespace athanor
