#include "track/run_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace athanor {
namespace {

constexpr size_t kMostColumns = 16;                      // eight bytes a run each
constexpr uint64_t kMissing = 0x7FF8'0000'0000'4E4Full;  // a NaN that no metric has in a column

double MetricOf(const RunEntry& run, uint32_t metric) {
  const RunMetric* found = FindMetric(run, metric);
  if (found == nullptr) return std::bit_cast<double>(kMissing);
  return std::isnan(found->last) ? std::numeric_limits<double>::quiet_NaN() : found->last;
}

template <class Values>
void TakeOut(Values& values, size_t place) {
  values[place] = values.back();
  values.pop_back();
}

}  // namespace

bool RunTable::IsMissing(double value) { return std::bit_cast<uint64_t>(value) == kMissing; }

void RunTable::Add(RunEntry& run) {
  run.place = static_cast<uint32_t>(runs_.size());
  for (auto& column : columns_) {
    if (column.values.size() == runs_.size()) column.values.push_back(MetricOf(run, column.metric));
  }
  runs_.push_back(&run);
  experiments_.push_back(0);
  started_.push_back(0);
  flags_.push_back(0);
  Update(run);
}

void RunTable::Update(const RunEntry& run) {
  const size_t place = run.place;
  experiments_[place] = run.experiment;
  started_[place] = run.started_ms;
  stale_ -= (flags_[place] & kStale) != 0;
  flags_[place] = static_cast<uint8_t>((run.deleted ? kDeleted : 0) | (run.stale() ? kStale : 0));
  stale_ += (flags_[place] & kStale) != 0;
}

void RunTable::UpdateMetrics(const RunEntry& run) {
  for (auto& column : columns_) {
    if (run.place < column.values.size()) column.values[run.place] = MetricOf(run, column.metric);
  }
}

void RunTable::Remove(const RunEntry& run) {
  const size_t place = run.place;
  stale_ -= (flags_[place] & kStale) != 0;
  // The last run takes the place. A column that is still being filled has no value of it.
  std::erase_if(columns_, [this](const auto& one) { return one.values.size() != runs_.size(); });
  for (auto& column : columns_) TakeOut(column.values, place);
  runs_.back()->place = static_cast<uint32_t>(place);
  TakeOut(runs_, place);
  TakeOut(experiments_, place);
  TakeOut(started_, place);
  TakeOut(flags_, place);
  ++moves_;
}

void RunTable::Clear() {
  *this = [moves = moves_ + 1] {
    RunTable empty;
    empty.moves_ = moves;
    return empty;
  }();
}

void RunTable::Reserve(size_t runs) {
  runs_.reserve(runs);
  experiments_.reserve(runs);
  started_.reserve(runs);
  flags_.reserve(runs);
}

std::span<const double> RunTable::Column(uint32_t metric) const {
  for (const auto& column : columns_) {
    if (column.metric == metric && column.values.size() == runs_.size()) return column.values;
  }
  return {};
}

bool RunTable::FillColumn(uint32_t metric, size_t most) {
  auto at = std::find_if(columns_.begin(), columns_.end(),
                         [metric](const auto& column) { return column.metric == metric; });
  if (at == columns_.end()) {
    if (columns_.size() >= kMostColumns) columns_.erase(columns_.begin());
    at = columns_.insert(columns_.end(), {metric, {}});
    at->values.reserve(runs_.size());
  }
  const size_t from = at->values.size();
  const size_t to = from + std::min(most, runs_.size() - from);
  for (size_t place = from; place < to; ++place) {
    at->values.push_back(MetricOf(*runs_[place], metric));
  }
  return to < runs_.size();
}

}  // namespace athanor
