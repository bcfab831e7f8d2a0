#include "steer/outbox.h"

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

void Outbox::Add(JobId job, Kind kind, std::string backend, Call call) {
  auto& lane = lanes_[job];
  lane.push_back({kind, std::move(backend), std::move(call)});
  if (lane.size() == 1) RunFirst(job);
}

void Outbox::RunFirst(JobId job) {
  const auto& work = lanes_.at(job).front();
  const auto& pools = pools_.at(work.backend);
  auto& pool = work.kind == Kind::kStart ? *pools.starts : *pools.ends;
  const bool taken = pool.Submit([this, job, call = work.call] {
    auto after = call();
    parts_.executor.Post([this, job, after = std::move(after)] {
      const auto lane = lanes_.find(job);
      lane->second.pop_front();
      if (lane->second.empty()) {
        lanes_.erase(lane);
      } else {
        RunFirst(job);
      }
      after();
    });
  });
  (void)taken;  // stopping: the store keeps it
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
  if (const auto* attempt = Find(parts_.live(effect.job), effect.attempt)) {
    at.push_back(attempt->placement.backend);
    handle = HandleOf(*attempt);
  } else {
    for (const auto& entry : parts_.backends.all()) at.push_back(entry.name());
  }
  auto left = std::make_shared<size_t>(at.size());
  auto again = std::make_shared<bool>(false);
  for (const auto& name : at) {
    auto* backend = parts_.backends.Find(name);
    if (backend == nullptr) {
      parts_.log.Log(LogLevel::kWarning, "an attempt is left at a back end that is not set up now",
                     {{"backend", name}, {"attempt", effect.attempt.ToString()}});
      continue;
    }
    Add(effect.job, Kind::kEnd, name, [this, backend, handle, effect, left, again]() -> After {
      auto status = backend->Release(handle);
      return [this, status, effect, left, again] {
        if (!status) {
          parts_.log.Log(LogLevel::kWarning, "release failed",
                         {{"what", status.error().what}, {"why", status.error().why}});
          *again = *again || status.error().code == ErrorCode::kUnavailable;
        }
        if (--*left > 0) return;
        *again ? PerformLater(effect) : Performed(effect.id);
      };
    });
  }
}

void Outbox::End(const JobRecord& record, std::function<void()> ended,
                 std::function<void()> failed) {
  const auto& attempt = *record.current();
  auto* backend = parts_.backends.Find(attempt.placement.backend);
  if (backend == nullptr) return failed();
  Add(record.id, Kind::kEnd, attempt.placement.backend,
      [this, backend, handle = HandleOf(attempt), ended = std::move(ended),
       failed = std::move(failed)]() -> After {
        const auto status = backend->Release(handle);
        if (status) return ended;
        parts_.log.Log(LogLevel::kWarning, "release failed",
                       {{"what", status.error().what}, {"why", status.error().why}});
        return failed;
      });
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
  Add(record.id, Kind::kStart, name, [this, plan, launching, backend]() -> After {
    auto handle = backend->Launch(*plan);
    return [this, launching, handle] { LaunchAnswered(launching, handle); };
  });
}

void Outbox::LaunchAnswered(const Launching& of, const Result<std::string>& handle) {
  // Without an answer it may still run, and an attempt that lost its agent does run: neither is
  // replaced, both are launched again.
  if (!handle && (of.effect == 0 || handle.error().code == ErrorCode::kUnavailable)) {
    parts_.log.Log(LogLevel::kWarning, "launch failed, asked for again",
                   {{"attempt", of.attempt.ToString()},
                    {"what", handle.error().what},
                    {"why", handle.error().why}});
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
