#include "serve/upkeep.h"

#include <malloc.h>
#include <time.h>

#include <cstddef>

#include "record/logs/log_store.h"
#include "record/series/series_store.h"
#include "track/run_book.h"

namespace athanor {
namespace {

constexpr Millis kSyncEvery{100};
constexpr Millis kKeepEvery{500};
constexpr size_t kKeptAtOnce = 1'000;  // runs
constexpr Millis kKeepAtEnd{1'000};
constexpr size_t kIdleHeap = 8 << 20;  // free bytes worth a walk over the heap
constexpr Millis kGiveBackEvery{2'000};
constexpr Millis kGiveBackWork{100};

// Of all threads.
Millis OwnCpuTime() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Millis(used.tv_sec * 1'000 + used.tv_nsec / 1'000'000);
}

}  // namespace

void Upkeep::Start() {
  parts_.executor.After(kSyncEvery, [this] { Tick(); });
}

// An fdatasync on a busy disk can take long.
void Upkeep::Tick() {
  const bool taken = pool_.Submit([this] {
    Sync();
    KeepMetrics();
    GiveBackMemory();
    parts_.executor.Post([this] { Start(); });
  });
  if (!taken) parts_.log.Log(LogLevel::kError, "the syncing thread is gone");
}

void Upkeep::Sync() {
  const auto logs = parts_.logs.Sync();
  const auto series = parts_.series.Sync();
  if (!logs) parts_.log.Log(LogLevel::kError, "log sync", {{"why", logs.error().what}});
  if (!series) parts_.log.Log(LogLevel::kError, "series sync", {{"why", series.error().what}});
}

// So that the next start need not read every series.
void Upkeep::KeepMetrics() {
  if (parts_.clock.Monotonic() - kept_at_ < kKeepEvery) return;
  kept_at_ = parts_.clock.Monotonic();
  parts_.runs.KeepSome(kKeptAtOnce);
}

// Memory that ten thousand submits used is returned to the system, not kept for the next ones.
void Upkeep::GiveBackMemory() {
  if (parts_.clock.Monotonic() - gave_back_ < kGiveBackEvery) return;
  // Both walk over what is free of a heap of gigabytes: not while nothing was done.
  if (OwnCpuTime() - worked_ < kGiveBackWork) return;
  gave_back_ = parts_.clock.Monotonic();
  if (::mallinfo2().fordblks >= kIdleHeap) ::malloc_trim(0);
  worked_ = OwnCpuTime();
}

void Upkeep::Finish() {
  Sync();
  const Millis until = parts_.clock.Monotonic() + kKeepAtEnd;
  while (parts_.clock.Monotonic() < until && parts_.runs.KeepSome(kKeptAtOnce, true) > 0) {
  }
}

}  // namespace athanor
