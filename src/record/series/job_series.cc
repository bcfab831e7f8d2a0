#include "record/series/job_series.h"

#include <algorithm>

namespace athanor {
namespace {

// What containers add to their content, roughly; a vector has room to grow.
constexpr size_t kStateBytes = sizeof(JobSeries) + 200;
constexpr size_t kSeriesBytes = sizeof(Series) + 200;
constexpr size_t kChannelBytes = 80;
constexpr size_t kChunkBytes = sizeof(SeriesChunk) * 3 / 2;

}  // namespace

SeriesPoint PointOf(const SeriesBlock& block, const SeriesBlock::Item& item) {
  return {item.step,
          item.wall_ns,
          item.value,
          block.attempt,
          block.rank,
          false,
          IsGuessed(block.channel)};
}

void JobSeries::Forget() {
  open = false;
  outlined = true;
  ++epoch;
  length = 0;
  series.clear();
  by_name.clear();
  by_id.clear();
  next_id = 0;
  last_seq.clear();
  resumes.clear();
  indexed = 0;
  index_bytes = 0;
  reported.clear();
  chunks = 0;
  name_bytes = 0;
}

void JobSeries::Heed(const Resumes& now) {
  for (auto& one : series) one.summary.Heed(resumes, now);
  resumes = now;
}

std::optional<uint64_t> JobSeries::LastOf(const PointBatch& batch) const {
  const auto at = last_seq.find({batch.attempt, batch.host, batch.rank, batch.channel});
  return at == last_seq.end() ? std::nullopt : std::optional(at->second);
}

bool JobSeries::IsLogged(std::string_view name) const {
  const auto at = by_name.find(name);
  return at != by_name.end() && series[at->second].summary.state().logged;
}

void JobSeries::Define(uint32_t id, std::string_view name) {
  if (by_id.contains(id)) return;
  auto at = by_name.find(name);
  if (at == by_name.end()) {
    at = by_name.emplace(name, series.size()).first;
    series.push_back({std::string(name), id, {}, {}});
    name_bytes += name.size();
  }
  by_id.emplace(id, at->second);
  next_id = std::max(next_id, id + 1);
}

void JobSeries::Add(const SeriesBlock& block) {
  for (const auto& item : block.items) {
    Series& one = series[by_id.at(item.name)];
    const SeriesPoint point = PointOf(block, item);
    one.summary.Add(point, resumes);
    if (!outlined) continue;
    chunks -= one.pyramid.chunks().size();
    one.pyramid.Add(point, block.from, block.to);
    chunks += one.pyramid.chunks().size();
  }
  auto& last = last_seq[{block.attempt, block.host, block.rank, block.channel}];
  last = std::max(last, block.items.back().seq);
}

void JobSeries::Take(SeriesIndex index) {
  for (auto& kept : index.series) {
    by_name.emplace(kept.name, series.size());
    for (const uint32_t id : kept.ids) by_id.emplace(id, series.size());
    name_bytes += kept.name.size();
    chunks += kept.chunks.size();
    series.push_back(
        {std::move(kept.name), kept.ids.front(), RunningSummary(std::move(kept.summary)), {}});
    series.back().pyramid.Take(std::move(kept.chunks));
  }
  next_id = index.next_id;
  last_seq = std::move(index.last_seq);
  resumes = std::move(index.resumes);
  indexed = index.length;
}

SeriesIndex JobSeries::Index(JobId job) const {
  SeriesIndex index;
  index.job = job;
  index.length = length;
  index.next_id = next_id;
  index.last_seq = last_seq;
  index.resumes = resumes;
  index.series.reserve(series.size());
  for (const auto& one : series) {
    index.series.push_back({one.name, {one.id}, one.summary.state(), one.pyramid.chunks()});
  }
  for (const auto& [id, at] : by_id) {
    if (id != index.series[at].ids.front()) index.series[at].ids.push_back(id);
  }
  return index;
}

void JobSeries::TakeOutline(JobSeries& other) {
  chunks = 0;
  for (auto& one : series) {
    const auto at = other.by_name.find(one.name);
    if (at == other.by_name.end()) continue;
    one.pyramid = std::move(other.series[at->second].pyramid);
    chunks += one.pyramid.chunks().size();
  }
  outlined = true;
}

void JobSeries::DropOutline() {
  for (auto& one : series) one.pyramid = {};
  chunks = 0;
  outlined = false;
}

void JobSeries::Weigh() {
  bytes = kStateBytes + series.size() * kSeriesBytes + 2 * name_bytes +
          last_seq.size() * kChannelBytes + chunks * kChunkBytes;
}

}  // namespace athanor
