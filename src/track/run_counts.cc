#include "track/run_counts.h"

#include <algorithm>

namespace athanor {
namespace {

uint32_t& At(std::vector<uint32_t>& counts, uint32_t key) {
  if (key >= counts.size()) counts.resize(key + 1);
  return counts[key];
}

}  // namespace

void RunCounts::Add(const RunEntry& run) {
  if (run.deleted) return;
  ++experiments_[run.experiment].sum.runs;
  Happened(run);
  for (const auto label : run.params) AddKey(run, KeyKind::kParam, label.key);
  for (const auto label : run.tags) AddKey(run, KeyKind::kTag, label.key);
  AddMetrics(run);
}

void RunCounts::Take(const RunEntry& run) {
  if (run.deleted) return;
  --experiments_[run.experiment].sum.runs;
  for (const auto label : run.params) TakeKey(run, KeyKind::kParam, label.key);
  for (const auto label : run.tags) TakeKey(run, KeyKind::kTag, label.key);
  TakeMetrics(run);
}

void RunCounts::AddKey(const RunEntry& run, KeyKind kind, uint32_t key) {
  if (run.deleted) return;
  ++At(experiments_[run.experiment].keys[static_cast<size_t>(kind)], key);
}

void RunCounts::TakeKey(const RunEntry& run, KeyKind kind, uint32_t key) {
  if (run.deleted) return;
  --At(experiments_[run.experiment].keys[static_cast<size_t>(kind)], key);
}

void RunCounts::AddMetrics(const RunEntry& run) {
  for (const auto& metric : run.metrics) AddKey(run, KeyKind::kMetric, metric.key);
}

void RunCounts::TakeMetrics(const RunEntry& run) {
  for (const auto& metric : run.metrics) TakeKey(run, KeyKind::kMetric, metric.key);
}

void RunCounts::Happened(const RunEntry& run) {
  auto& last = experiments_[run.experiment].sum.last_ms;
  last = std::max({last, run.started_ms, run.ended_ms});
}

RunCounts::Sum RunCounts::Of(int64_t experiment) const {
  const auto at = experiments_.find(experiment);
  return at == experiments_.end() ? Sum{} : at->second.sum;
}

std::vector<uint32_t> RunCounts::Keys(KeyKind kind, std::optional<int64_t> experiment) const {
  std::vector<uint32_t> all;
  for (const auto& [id, one] : experiments_) {
    if (experiment && *experiment != id) continue;
    const auto& counts = one.keys[static_cast<size_t>(kind)];
    if (all.size() < counts.size()) all.resize(counts.size());
    for (size_t key = 0; key < counts.size(); ++key) all[key] += counts[key];
  }
  return all;
}

}  // namespace athanor
