// RunBook's metrics: read again from the points on demand, and stored when a run is quiet.
#include <algorithm>
#include <chrono>

#include "base/exec/shared_mutex.h"
#include "track/run_book.h"

namespace athanor {
namespace {

constexpr size_t kLookedAtAtOnce = 256;  // runs, before others get a turn
constexpr uint32_t kQuiet = 30;          // seconds; twice as long after each time it was kept
constexpr uint8_t kMostDoubled = 12;

uint32_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

bool HasEnded(const RunEntry& run) {
  return run.status != RunStatus::kRunning && run.status != RunStatus::kScheduled;
}

bool IsQuiet(const RunEntry& run, uint32_t now) {
  return HasEnded(run) || now - run.touched_s >= kQuiet << std::min(run.keeps, kMostDoubled);
}

std::vector<RunMetric> MetricsOf(const std::vector<SeriesSummary>& summaries,
                                 const std::function<uint32_t(std::string_view)>& key_of) {
  std::vector<RunMetric> metrics;
  metrics.reserve(summaries.size());
  for (const auto& summary : summaries) {
    metrics.push_back({key_of(summary.name), summary.last, summary.last_step.value_or(0),
                       summary.last_wall_ns / 1'000'000, summary.min, summary.max, summary.count});
  }
  std::sort(metrics.begin(), metrics.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return metrics;
}

}  // namespace

// New runs have time to get their first points.
void RunBook::Insert(RunEntry& run) {
  run.touched_s = Now();
  table_.Add(run);
  index_.Add(run);
  counts_.Add(run);
  ToKeep(run);
}

void RunBook::ToKeep(RunEntry& run) const {
  if (run.queued) return;
  run.queued = true;
  to_keep_.push_back(run.id);
}

// Its metrics may be others from now on: those held are stale, and those stored are not valid.
void RunBook::Changed(RunEntry& run) {
  if (run.kept) kept_->Touched(run.id);
  run.kept = false;
  ++run.touched;
  run.touched_s = Now();
  table_.Update(run);
  ToKeep(run);
}

// Before the first point is stored, it must be durable that the metrics are no longer valid.
void RunBook::BeforePoints(JobId id) {
  const WriteLock lock(mutex_);
  const auto at = runs_.find(id);
  if (at == runs_.end()) return;
  at->second.storing = true;
  if (at->second.kept) Changed(at->second);
}

void RunBook::AfterPoints(JobId id) {
  const WriteLock lock(mutex_);
  const auto at = runs_.find(id);
  if (at == runs_.end()) return;
  at->second.storing = false;
  Changed(at->second);
}

bool RunBook::IsFresh(JobId id) const {
  const ReadLock lock(mutex_);
  const auto at = runs_.find(id);
  return at == runs_.end() || !at->second.stale();
}

std::vector<JobId> RunBook::StaleRuns(const std::optional<std::vector<int64_t>>& experiments,
                                      ViewType view) const {
  const ReadLock lock(mutex_);
  std::vector<JobId> stale;
  if (table_.stale() == 0) return stale;
  for (size_t place = 0; place < table_.size(); ++place) {
    const uint8_t flags = table_.flags()[place];
    if ((flags & RunTable::kStale) == 0) continue;
    if (view != ViewType::kAll &&
        ((flags & RunTable::kDeleted) != 0) != (view == ViewType::kDeleted)) {
      continue;
    }
    if (experiments &&
        std::ranges::find(*experiments, table_.experiments()[place]) == experiments->end()) {
      continue;
    }
    stale.push_back(table_.run(place).id);
  }
  return stale;
}

// Reads the summaries of points without the lock, so that changes of the book do not wait. Two
// threads may read those of the same run at a time; the newer ones count.
void RunBook::Refresh(const std::vector<JobId>& runs) const {
  for (const JobId id : runs) {
    Resumes resumes;
    uint32_t touched = 0;
    {
      const ReadLock lock(mutex_);
      const auto at = runs_.find(id);
      if (at == runs_.end() || !at->second.stale()) continue;
      touched = at->second.touched;  // points that come from now on make it stale again
      resumes = at->second.more().resumes;
    }
    const auto summaries = series_.Summaries(id, resumes);
    if (!summaries) continue;  // stays stale
    const WriteLock lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    RunEntry& run = at->second;
    // Somebody read newer ones meanwhile. By difference, because the counters may wrap.
    if (static_cast<int32_t>(touched - run.read) <= 0) continue;
    counts_.TakeMetrics(run);
    run.metrics = MetricsOf(*summaries,
                            [this](std::string_view name) REQUIRES(mutex_) { return KeyOf(name); });
    counts_.AddMetrics(run);
    run.read = touched;
    table_.UpdateMetrics(run);
    table_.Update(run);
  }
}

// A run whose position is known is found at once; one that has moved, by its id.
void RunBook::PeekAt(const std::vector<JobId>& runs, const std::vector<uint32_t>& places,
                     const std::function<void(const RunEntry&)>& look) const {
  for (size_t from = 0; from < runs.size(); from += kLookedAtAtOnce) {
    const size_t to = std::min(from + kLookedAtAtOnce, runs.size());
    const ReadLock lock(mutex_);
    for (size_t i = from; i < to; ++i) {
      if (i < places.size() && places[i] < table_.size() && table_.run(places[i]).id == runs[i]) {
        look(table_.run(places[i]));
      } else if (const auto at = runs_.find(runs[i]); at != runs_.end()) {
        look(at->second);
      }
    }
  }
}

void RunBook::LookAt(const std::vector<JobId>& runs, const std::vector<uint32_t>& places,
                     const std::function<void(const RunEntry&)>& look) const {
  bool any = false;
  {
    const ReadLock lock(mutex_);
    any = table_.stale() > 0;
  }
  if (any) {
    std::vector<JobId> stale;
    PeekAt(runs, places, [&](const RunEntry& run) {
      if (run.stale()) stale.push_back(run.id);
    });
    Refresh(stale);
  }
  PeekAt(runs, places, look);
}

void RunBook::Peek(const std::vector<JobId>& runs,
                   const std::function<void(const RunEntry&)>& look) const {
  PeekAt(runs, {}, look);
}

void RunBook::Look(const std::vector<JobId>& runs,
                   const std::function<void(const RunEntry&)>& look) const {
  LookAt(runs, {}, look);
}

void RunBook::Look(const RunPage& page, const std::function<void(const RunEntry&)>& look) const {
  LookAt(page.runs, page.places, look);
}

std::vector<std::pair<std::string, uint32_t>> RunBook::CountKeys(
    KeyKind kind, std::optional<int64_t> experiment) const {
  if (kind == KeyKind::kMetric) {
    std::optional<std::vector<int64_t>> experiments;
    if (experiment) experiments = {*experiment};
    Refresh(StaleRuns(experiments, ViewType::kActive));
  }
  const ReadLock lock(mutex_);
  std::vector<std::pair<std::string, uint32_t>> keys;
  const auto counts = counts_.Keys(kind, experiment);
  for (uint32_t key = 0; key < counts.size(); ++key) {
    if (counts[key] > 0) keys.emplace_back(names_[key], counts[key]);
  }
  return keys;
}

// One run at a time, so that the lock is held for one only. Whichever is not ready goes to the end.
size_t RunBook::KeepSome(size_t most, bool all) {
  const uint32_t now = Now();
  size_t left = 0;
  {
    const ReadLock lock(mutex_);
    if (kept_ == nullptr) return 0;
    left = std::min(most, to_keep_.size());
  }
  for (; left > 0; --left) {
    JobId id;
    {
      const WriteLock lock(mutex_);
      if (to_keep_.empty()) break;
      id = to_keep_.front();
      to_keep_.pop_front();
      const auto at = runs_.find(id);
      if (at == runs_.end()) continue;
      if (!all && !IsQuiet(at->second, now)) {
        to_keep_.push_back(id);
        continue;
      }
    }
    Refresh({id});
    const WriteLock lock(mutex_);
    const auto at = runs_.find(id);
    if (at == runs_.end()) continue;
    RunEntry& run = at->second;
    if (run.storing || run.stale()) {
      to_keep_.push_back(id);
      continue;
    }
    run.queued = false;
    run.keeps = static_cast<uint8_t>(std::min<int>(run.keeps + 1, kMostDoubled));
    run.metrics.shrink_to_fit();
    run.kept = kept_->Keep(id, run.more().resumes, run.metrics,
                           [this](uint32_t key) -> const std::string& { return KeyName(key); });
  }
  const ReadLock lock(mutex_);
  return to_keep_.size();
}

}  // namespace athanor
