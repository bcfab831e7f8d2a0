#include "steer/attempts.h"

#include <algorithm>

#include "base/text/text.h"
#include "job/causes.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;

// An attempt that lasted less counts as a quick death; from the third on, each waits.
constexpr int64_t kQuickMs = 5'000;
constexpr size_t kQuickDeaths = 3;
constexpr int64_t kLongestPauseMs = 3'600'000;

// SplitMix64: the same pauses for the same seed and attempt, on any machine.
uint64_t Mixed(uint64_t seed, uint64_t number) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ull * (number + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

int64_t Doubled(int64_t pause, size_t times) {
  for (; times > 0 && pause < kLongestPauseMs; --times) pause *= 2;
  return std::min(pause, kLongestPauseMs);
}

}  // namespace

bool IsInfrastructure(const Cause& cause) {
  const auto* row = FindCause(cause.kind);
  return row && row->infrastructure;
}

bool RetryNames(const RetrySpec& retry, const Cause& cause, const ExitInfo& exit) {
  const auto* row = FindCause(cause.kind);
  for (const auto& word : retry.on) {
    if (word == cause.kind) return true;
    if (row && row->refined && (word == "python_exception" || word == "nonzero_exit")) return true;
    if (word == "exit:" + std::to_string(exit.code) && exit.code >= 0) return true;
    if (std::find(exit.matched.begin(), exit.matched.end(), word) != exit.matched.end()) {
      return true;
    }
  }
  return false;
}

const CheckpointInfo* LastCheckpoint(const JobRecord& record) {
  for (auto at = record.attempts.rbegin(); at != record.attempts.rend(); ++at) {
    if (at->saved) return &*at->saved;
  }
  return nullptr;
}

uint32_t FruitlessLosses(const JobRecord& record) {
  uint32_t losses = 0;
  for (auto at = record.attempts.rbegin(); at != record.attempts.rend(); ++at) {
    if (at->saved || at->spot || at->cause.Is(CauseKind::kPreempted) ||
        !IsInfrastructure(at->cause)) {
      break;
    }
    ++losses;
  }
  return losses;
}

int64_t LostMs(const Attempt& attempt) {
  const int64_t kept = attempt.saved ? attempt.saved->held_ms : attempt.setup_ms;
  return std::max<int64_t>(attempt.held_ms - kept, 0);
}

std::string NoticeText(const Attempt& attempt) {
  const ExitInfo exit = attempt.exit.value_or(ExitInfo{});
  const auto grace = attempt.interrupt ? attempt.interrupt->grace : milliseconds(0);
  if (!attempt.exit) return "it had no notice";
  const std::string of = " of " + HumanDuration(grace);
  if (exit.saved_ms >= 0) return "saved in " + HumanDuration(milliseconds(exit.saved_ms)) + of;
  if (exit.notice_ms < 0) return "it had no notice";
  return "not saved; it ended " + HumanDuration(milliseconds(exit.notice_ms)) + of +
         " after the notice";
}

WallTime NotBefore(const JobRecord& record) {
  if (record.attempts.empty()) return {};
  const auto& last = record.attempts.back();
  int64_t pause = 0;
  if (!IsInfrastructure(last.cause) && record.retries > 0) {
    pause = Doubled(record.spec.retry.backoff.count(), record.retries - 1);
  }
  size_t quick = 0;
  for (auto at = record.attempts.rbegin(); at != record.attempts.rend(); ++at) {
    if (at->held_ms >= kQuickMs || at->saved || at->cause.Is(CauseKind::kPreempted)) break;
    ++quick;
  }
  if (quick >= kQuickDeaths) pause = std::max(pause, Doubled(1'000, quick - kQuickDeaths));
  if (last.cause.Is(CauseKind::kLaunchFailed)) pause = std::max(pause, Doubled(1'000, quick));
  return {last.ended.ms + pause};
}

std::string NextType(const JobRecord& record) {
  const auto& ladder = record.spec.retry.escalate;
  size_t taken = 0;
  for (const auto& attempt : record.attempts) {
    if (attempt.cause.Is(CauseKind::kOutOfMemory)) ++taken;
  }
  // Called while the newest attempt ends, and after: its own end counts both times.
  return taken == 0 || taken > ladder.size() ? "" : ladder[taken - 1];
}

ResourceSpec NextResources(const JobRecord& record) {
  ResourceSpec resources = record.spec.resources;
  const auto& ladder = record.spec.retry.escalate;
  size_t taken = 0;
  for (const auto& attempt : record.attempts) {
    if (attempt.cause.Is(CauseKind::kOutOfMemory)) ++taken;
  }
  if (taken == 0 || ladder.empty()) return resources;
  resources.type = ladder[std::min(taken, ladder.size()) - 1];
  resources.cpu_millis = 0;
  resources.memory_bytes = 0;
  resources.gpus = 0;
  return resources;
}

std::optional<milliseconds> PreemptAfter(const JobRecord& record) {
  const auto& spot = record.spec.resources.spot;
  const auto* attempt = record.current();
  if (!attempt || record.spot_fell_back) return std::nullopt;
  if (spot.preempt_every.count() > 0) {
    const int64_t jitter = spot.preempt_jitter.count();
    int64_t ms = spot.preempt_every.count();
    if (jitter > 0) {
      const uint64_t span = static_cast<uint64_t>(2 * jitter + 1);
      ms += static_cast<int64_t>(Mixed(spot.preempt_seed, attempt->number) % span) - jitter;
    }
    return milliseconds(std::max<int64_t>(ms, 100));
  }
  if (spot.preempt_after.count() > 0 && attempt->number == 1) return spot.preempt_after;
  return std::nullopt;
}

}  // namespace athanor
