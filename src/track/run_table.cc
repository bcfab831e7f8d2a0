#include "track/run_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace athanor {
namespace {

constexpr size_t kMostColumns = 16;
constexpr uint64_t kMissing = 0x7FF8'0000'0000'4E4Full;  // a NaN that no metric has in a column

double ValueOf(const RunEntry& run, uint32_t metric) {
  const RunMetric* found = FindMetric(run, metric);
  if (found == nullptr) return std::bit_cast<double>(kMissing);
  return std::isnan(found->last) ? std::numeric_limits<double>::quiet_NaN() : found->last;
}

}  // namespace

const RunMetric* FindMetric(const RunEntry& run, uint32_t key) {
  const auto at = std::lower_bound(run.metrics.begin(), run.metrics.end(), key,
                                   [](const auto& metric, uint32_t k) { return metric.key < k; });
  return at != run.metrics.end() && at->key == key ? &*at : nullptr;
}

bool RunTable::IsMissing(double value) { return std::bit_cast<uint64_t>(value) == kMissing; }

void RunTable::Add(RunEntry& run) {
  run.place = static_cast<uint32_t>(rows_.size());
  rows_.emplace_back();
  for (auto& [metric, values] : columns_) values.push_back(ValueOf(run, metric));
  Update(run);
}

void RunTable::Update(RunEntry& run) {
  rows_[run.place] = {&run, run.row.experiment, run.row.started_ms, run.row.deleted, run.stale};
}

void RunTable::UpdateMetrics(const RunEntry& run) {
  for (auto& [metric, values] : columns_) values[run.place] = ValueOf(run, metric);
}

void RunTable::Remove(const RunEntry& run) {
  const uint32_t place = run.place;
  rows_[place] = rows_.back();
  rows_[place].run->place = place;
  rows_.pop_back();
  for (auto& [metric, values] : columns_) {
    values[place] = values.back();
    values.pop_back();
  }
}

void RunTable::Clear() {
  rows_.clear();
  columns_.clear();
}

std::span<const double> RunTable::Column(uint32_t metric) const {
  for (const auto& [key, values] : columns_) {
    if (key == metric) return values;
  }
  return {};
}

void RunTable::AddColumn(uint32_t metric) {
  const auto same = [metric](const auto& column) { return column.first == metric; };
  if (std::any_of(columns_.begin(), columns_.end(), same)) return;
  if (columns_.size() >= kMostColumns) columns_.erase(columns_.begin());
  auto& [key, values] = columns_.emplace_back(metric, std::vector<double>());
  values.reserve(rows_.size());
  for (const Row& row : rows_) values.push_back(ValueOf(*row.run, metric));
}

}  // namespace athanor
