#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>

#include "base/exec/mutex.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "record/append_file.h"
#include "record/series/series_parts.h"
#include "record/series/series_places.h"
#include "record/series/series_walk.h"

namespace athanor {
namespace {

using PointsByName = std::map<std::string, std::vector<SeriesPoint>, std::less<>>;

// The points of some names, in order of arrival; names are found as the file is read.
class Collector {
 public:
  explicit Collector(PointsByName& wanted) : wanted_(wanted) {}
  SeriesVisitor Visitor() {
    SeriesVisitor visitor;
    visitor.name = [this](uint32_t id, std::string_view name) {
      const auto at = wanted_.find(name);
      points_.try_emplace(id, at == wanted_.end() ? nullptr : &at->second);
    };
    visitor.block = [this](const SeriesBlock& block) {
      for (const auto& item : block.items) {
        const auto at = points_.find(item.name);
        if (at != points_.end() && at->second) at->second->push_back(PointOf(block, item));
      }
    };
    return visitor;
  }

 private:
  PointsByName& wanted_;
  std::unordered_map<uint32_t, std::vector<SeriesPoint>*> points_;
};

// Then the sample is made from the points themselves: a chunk would be too large a part of it.
bool IsShort(const SamplePlan& plan, const SampleQuery& query) {
  return plan.points <= std::max<uint64_t>(kFewPoints, 2 * query.width);
}

// The ids that blocks use for the series; mostly one.
std::vector<uint32_t> IdsOf(const JobSeries& state, size_t series) REQUIRES(state.mutex) {
  if (state.by_id.size() == state.series.size()) return {state.series[series].id};
  std::vector<uint32_t> ids;
  for (const auto& [id, at] : state.by_id) {
    if (at == series) ids.push_back(id);
  }
  return ids;
}

bool IsIn(const std::vector<uint32_t>& ids, uint32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

tl::unexpected<Error> NoSuchName(JobId job, const JobSeries& state, std::string_view name)
    REQUIRES(state.mutex) {
  std::vector<std::string> names;
  if (!state.by_name.contains(name)) {
    for (const auto& series : state.series) names.push_back(series.name);
  }
  const auto near = Nearest(name, names);
  return Fail(
      Error{ErrorCode::kNotFound,
            fmt::format("no metric '{}' in this run", Printable(name.substr(0, 200))),
            near ? fmt::format("did you mean: ath metrics {} {}", job.ToString(), ShellQuote(*near))
                 : "ath metrics " + job.ToString()}
          .Why(state.length == 0 ? "it has no metrics at all"
               : names.empty()   ? "its records were damaged"
                                 : fmt::format("it has {} others", names.size()))
          .Id("ATH-R0007"));
}

}  // namespace

// Reads the points of `wanted` up to `length`, without the state's mutex: bytes below a length that
// was once valid never change.
Status SeriesStore::Parts::Collect(JobId job, JobSeries& state, uint64_t length,
                                   PointsByName& wanted) const {
  ATHANOR_TRY(const UniqueFd fd, OpenToRead(FindSeries(dir, job)));
  Collector collector(wanted);
  ATHANOR_TRY(const SeriesScan scan, ScanSeries(fd.get(), 0, length, collector.Visitor()));
  const MutexLock lock(state.mutex);
  ReportShort(job, state, scan, length);
  return Ok();
}

Result<std::vector<SeriesSummary>> SeriesStore::Summaries(JobId job, const Resumes& resumes) const {
  parts_->TrimIfMuch();
  const auto lease = parts_->jobs.Take(job);
  JobSeries& state = *lease;
  std::vector<SeriesSummary> summaries;
  PointsByName stale;
  uint64_t length = 0;
  {
    const MutexLock lock(state.mutex);
    ATHANOR_CHECK_OK(parts_->Open(job, state));
    length = state.length;
    if (state.resumes != resumes) state.Heed(resumes);
    for (const auto& [name, at] : state.by_name) {
      const RunningSummary& summary = state.series[at].summary;
      if (summary.stale()) stale.emplace(name, std::vector<SeriesPoint>());
      summaries.push_back(summary.value());
      summaries.back().name = name;
    }
  }
  if (!stale.empty()) {
    ATHANOR_CHECK_OK(parts_->Collect(job, state, length, stale));
    Parts::SummaryByName made;
    for (auto& [name, points] : stale) {
      made.emplace(name, RunningSummary::Of(std::move(points), resumes));
    }
    for (auto& summary : summaries) {
      const auto at = made.find(summary.name);
      if (at == made.end()) continue;
      summary = at->second.value();
      summary.name = at->first;
    }
    const MutexLock lock(state.mutex);
    if (state.resumes == resumes) ATHANOR_CHECK_OK(parts_->Renew(state, length, made));
  }
  std::erase_if(summaries, [](const auto& summary) { return summary.count == 0; });
  return summaries;
}

// Puts summaries that were made from the first `length` bytes into the state, after adding what was
// appended meanwhile.
Status SeriesStore::Parts::Renew(JobSeries& state, uint64_t length, SummaryByName& made) const {
  if (!state.open || state.length < length) return Ok();
  if (state.length > length) {
    ATHANOR_TRY(const UniqueFd fd, OpenToRead(state.path));
    SeriesVisitor visitor;
    visitor.block = [&](const SeriesBlock& block) REQUIRES(state.mutex) {
      for (const auto& item : block.items) {
        const auto at = state.by_id.find(item.name);
        if (at == state.by_id.end()) continue;
        const auto summary = made.find(state.series[at->second].name);
        if (summary != made.end()) summary->second.Add(PointOf(block, item), state.resumes);
      }
    };
    ATHANOR_CHECK_OK(ScanSeries(fd.get(), length, state.length, visitor));
  }
  for (auto& [name, summary] : made) {
    const auto at = state.by_name.find(name);
    if (at != state.by_name.end()) state.series[at->second].summary = std::move(summary);
  }
  return Ok();
}

Result<std::vector<SeriesPoint>> SeriesStore::Read(JobId job, std::string_view name,
                                                   bool with_abandoned,
                                                   const Resumes& resumes) const {
  ATHANOR_TRY(auto points, parts_->Arrived(job, name));
  return MergePoints(std::move(points), with_abandoned, resumes);
}

Result<std::vector<SeriesPoint>> SeriesStore::History(JobId job, std::string_view name,
                                                      const Resumes& resumes) const {
  ATHANOR_TRY(auto points, parts_->Arrived(job, name));
  return KeepAllPoints(std::move(points), resumes);
}

Result<std::optional<std::vector<SeriesPoint>>> SeriesStore::ShortHistory(
    JobId job, std::string_view name, uint64_t most, const Resumes& resumes) const {
  ATHANOR_TRY(auto chunks, parts_->Chunks(job, name));
  KeepSpeakers(chunks);
  uint64_t count = 0;
  for (const auto& chunk : chunks) count += chunk.count;
  std::optional<std::vector<SeriesPoint>> history;
  if (count > most) return history;
  std::vector<SeriesPoint> points;
  ATHANOR_CHECK_OK(parts_->ReadChunks(job, name, chunks, points));
  history = KeepAllPoints(std::move(points), resumes);
  return history;
}

std::optional<std::vector<SeriesPoint>> SeriesStore::SampleAtHand(JobId job, std::string_view name,
                                                                  const SampleQuery& query,
                                                                  const Resumes& resumes) const {
  std::vector<SeriesChunk> chunks;
  {
    const auto lease = parts_->jobs.Take(job);
    const TryMutexLock lock(lease->mutex);
    if (!lock.held() || !lease->open || !lease->outlined) return std::nullopt;
    const auto at = lease->by_name.find(name);
    if (at == lease->by_name.end()) return std::nullopt;
    chunks = lease->series[at->second].pyramid.chunks();
  }
  // Whatever needs the file is left to Sample, which may wait.
  const SamplePlan plan = PlanSample(std::move(chunks), query, resumes);
  if (!plan.by_chunks || !plan.partly.empty() || IsShort(plan, query)) return std::nullopt;
  return ThinChunks(plan.whole, {}, query.width);
}

Result<std::vector<SeriesPoint>> SeriesStore::Sample(JobId job, std::string_view name,
                                                     const SampleQuery& query,
                                                     const Resumes& resumes) const {
  ATHANOR_TRY(auto chunks, parts_->Chunks(job, name));
  SamplePlan plan = PlanSample(std::move(chunks), query, resumes);
  if (!plan.by_chunks) {
    ATHANOR_TRY(auto points, Read(job, name, false, resumes));
    std::erase_if(points, [&](const SeriesPoint& p) {
      return p.step ? (query.from_step && *p.step < *query.from_step) ||
                          (query.to_step && *p.step > *query.to_step)
                    : query.from_step || query.to_step;
    });
    return Thin(points, query.width);
  }
  if (IsShort(plan, query)) {
    std::move(plan.whole.begin(), plan.whole.end(), std::back_inserter(plan.partly));
    plan.whole.clear();
  }
  std::vector<SeriesPoint> read;
  ATHANOR_CHECK_OK(parts_->ReadChunks(job, name, plan.partly, read));
  KeepCounted(plan, query, read);
  return ThinChunks(plan.whole, std::move(read), query.width);
}

// The points of a name in the blocks of some of its chunks, in order of arrival.
Status SeriesStore::Parts::ReadChunks(JobId job, std::string_view name,
                                      const std::vector<SeriesChunk>& chunks,
                                      std::vector<SeriesPoint>& points) {
  if (chunks.empty()) return Ok();
  std::vector<uint32_t> ids;
  std::string path;
  {
    const auto lease = jobs.Take(job);
    const MutexLock lock(lease->mutex);
    ATHANOR_CHECK_OK(Open(job, *lease));
    path = lease->path;
    const auto at = lease->by_name.find(name);
    if (at != lease->by_name.end()) ids = IdsOf(*lease, at->second);
  }
  // Neighbours may share blocks: each block is read once.
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& chunk : chunks) ranges.emplace_back(chunk.from, chunk.to);
  std::sort(ranges.begin(), ranges.end());
  ATHANOR_TRY(const UniqueFd fd, OpenToRead(path));
  SeriesVisitor visitor;
  visitor.block = [&](const SeriesBlock& block) {
    for (const auto& item : block.items) {
      if (IsIn(ids, item.name)) points.push_back(PointOf(block, item));
    }
  };
  uint64_t done = 0;
  for (auto [from, to] : ranges) {
    from = std::max(from, done);
    if (from >= to) continue;
    ATHANOR_CHECK_OK(ScanSeries(fd.get(), from, to, visitor));
    done = to;
  }
  return Ok();
}

Result<std::vector<SeriesChunk>> SeriesStore::Parts::Chunks(JobId job, std::string_view name) {
  TrimIfMuch();
  const auto lease = jobs.Take(job);
  Lock lock(lease->mutex);
  ATHANOR_CHECK_OK(Open(job, *lease));
  ATHANOR_CHECK_OK(Outline(job, *lease, lock));
  const auto at = lease->by_name.find(name);
  if (at == lease->by_name.end()) return std::vector<SeriesChunk>();
  return lease->series[at->second].pyramid.chunks();
}

// All points of a name that there are, in order of arrival.
Result<std::vector<SeriesPoint>> SeriesStore::Parts::Arrived(JobId job, std::string_view name) {
  TrimIfMuch();
  const auto lease = jobs.Take(job);
  JobSeries& state = *lease;
  PointsByName wanted;
  auto& points = wanted.emplace(name, std::vector<SeriesPoint>()).first->second;
  uint64_t length = 0;
  {
    const MutexLock lock(state.mutex);
    ATHANOR_CHECK_OK(Open(job, state));
    if (!state.by_name.contains(name)) return NoSuchName(job, state, name);
    length = state.length;
  }
  ATHANOR_CHECK_OK(Collect(job, state, length, wanted));
  if (!points.empty()) return std::move(points);
  const MutexLock lock(state.mutex);
  return NoSuchName(job, state, name);
}

Result<SeriesWalk> SeriesStore::Walk(JobId job, std::string_view name, WalkOrder order,
                                     bool with_abandoned, const Resumes& resumes) const {
  parts_->TrimIfMuch();
  const auto lease = parts_->jobs.Take(job);
  JobSeries& state = *lease;
  Parts::Lock lock(state.mutex);
  ATHANOR_CHECK_OK(parts_->Open(job, state));
  ATHANOR_CHECK_OK(parts_->Outline(job, state, lock));
  const auto at = state.by_name.find(name);
  if (at == state.by_name.end() || state.series[at->second].pyramid.chunks().empty()) {
    return NoSuchName(job, state, name);
  }
  auto open = [parts = parts_.get(), job, path = state.path,
               ids = IdsOf(state, at->second)]() -> Result<SeriesWalk::Reader> {
    ATHANOR_TRY(auto file, OpenToRead(path));
    // Shared, as a std::function is copied.
    auto fd = std::make_shared<UniqueFd>(std::move(file));
    return [parts, job, ids, fd](uint64_t from, uint64_t to,
                                 const SeriesWalk::Visit& visit) -> Status {
      SeriesVisitor visitor;
      visitor.block = [&](const SeriesBlock& block) {
        static_assert(kMaxBlockItems <= 1u << 10);
        for (size_t i = 0; i < block.items.size(); ++i) {
          const auto& item = block.items[i];
          if (IsIn(ids, item.name)) visit(PointOf(block, item), block.from << 10 | i);
        }
      };
      ATHANOR_TRY(const SeriesScan scan, ScanSeries(fd->get(), from, to, visitor));
      if (scan.damage.empty() && scan.end >= to) return Ok();
      const auto damaged = parts->jobs.Take(job);
      const MutexLock state_lock(damaged->mutex);
      parts->ReportShort(job, *damaged, scan, to);
      return Ok();
    };
  };
  return SeriesWalk(state.series[at->second].pyramid.chunks(), order, with_abandoned, resumes,
                    std::move(open));
}

}  // namespace athanor
