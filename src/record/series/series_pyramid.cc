#include "record/series/series_pyramid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "record/series/series_merge.h"

namespace athanor {
namespace {

using Spot = SeriesChunk::Spot;

Spot SpotOf(const SeriesPoint& point) { return {point.step, point.wall_ns, point.value}; }

// Whether `next` comes after `last` in the order of readers, and replaces nothing.
bool Follows(const Spot& last, const Spot& next) {
  if (!next.step) return !last.step && next.wall_ns >= last.wall_ns;
  return !last.step || *next.step > *last.step;
}

SeriesPoint SpotPoint(const SeriesChunk& chunk, const Spot& spot) {
  return {spot.step, spot.wall_ns, spot.value, chunk.attempt, chunk.rank, false, chunk.guessed};
}

bool InOrder(const SeriesPoint& a, const SeriesPoint& b) {
  return std::tie(a.step, a.wall_ns, a.attempt) < std::tie(b.step, b.wall_ns, b.attempt);
}

bool Same(const SeriesPoint& a, const SeriesPoint& b) {
  return a.attempt == b.attempt && a.rank == b.rank && SpotOf(a) == SpotOf(b);
}

void DropSteps(SeriesChunk& chunk) {
  chunk.ordered = chunk.by_time;
  chunk.first_step.reset();
  chunk.last_step.reset();
  for (Spot* spot : {&chunk.first, &chunk.last, &chunk.min, &chunk.max, &chunk.odd}) {
    spot->step.reset();
  }
}

// Of one rank only, and each attempt's chunks in order: then no point replaces another, and what
// counts of an attempt is what has a low enough step.
bool IsPlain(const std::vector<SeriesChunk>& chunks) {
  std::map<uint32_t, const SeriesChunk*> last;
  for (const auto& chunk : chunks) {
    if (!chunk.ordered || chunk.rank != chunks.front().rank) return false;
    // HighestSteps needs the step below it.
    if (chunk.first_step == std::numeric_limits<int64_t>::min()) return false;
    const auto [at, fresh] = last.try_emplace(chunk.attempt, &chunk);
    if (!fresh && !Follows(at->second->last, chunk.first)) return false;
    at->second = &chunk;
  }
  return true;
}

// By attempt, the greatest step that counts: below the first step of every later attempt, and not
// beyond the step at which one resumed.
std::map<uint32_t, int64_t> HighestSteps(const std::vector<SeriesChunk>& chunks,
                                         const Resumes& resumes) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  std::map<uint32_t, int64_t> first;  // of an attempt: in order, so its first chunk has it
  for (const auto& chunk : chunks) {
    if (chunk.first_step) first.try_emplace(chunk.attempt, *chunk.first_step);
  }
  std::map<uint32_t, int64_t> highest;
  for (const auto& chunk : chunks) highest.emplace(chunk.attempt, kAll);
  for (auto& [attempt, bound] : highest) {
    for (auto later = first.upper_bound(attempt); later != first.end(); ++later) {
      bound = std::min(bound, later->second - 1);
    }
    for (auto later = resumes.upper_bound(attempt); later != resumes.end(); ++later) {
      bound = std::min(bound, later->second);
    }
  }
  return highest;
}

// Of consecutive points or chunks: the lowest, the highest, and the first that is not finite.
class Extremes {
 public:
  void Add(const SeriesPoint& point) {
    if (!std::isfinite(point.value)) {
      if (!odd_) odd_ = point;
      return;
    }
    if (!min_ || point.value < min_->value) min_ = point;
    if (!max_ || point.value > max_->value) max_ = point;
  }
  // Ends the part: its results are added to `out`, in order.
  void Flush(std::vector<SeriesPoint>& out) {
    std::array<SeriesPoint, 3> found;
    auto end = found.begin();
    for (auto* point : {&min_, &max_, &odd_}) {
      if (!*point) continue;
      auto at = end++;
      for (; at != found.begin() && InOrder(**point, at[-1]); --at) *at = at[-1];
      *at = **point;
      point->reset();
    }
    // One point may be both the lowest and the highest, or stand there already.
    for (auto point = found.begin(); point != end; ++point) {
      if (out.empty() || !Same(out.back(), *point)) out.push_back(*point);
    }
  }

 private:
  std::optional<SeriesPoint> min_;
  std::optional<SeriesPoint> max_;
  std::optional<SeriesPoint> odd_;
};

}  // namespace

bool SeriesChunk::Spot::operator==(const Spot& other) const {
  return step == other.step && wall_ns == other.wall_ns &&
         std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(other.value);
}

void SeriesPyramid::Add(const SeriesPoint& point, uint64_t from, uint64_t to) {
  if (!chunks_.empty() && chunks_.back().guessed != point.guessed) {
    if (point.guessed) return;
    chunks_.clear();
  }
  const bool fits = !chunks_.empty() && chunks_.back().count < kChunkPoints &&
                    chunks_.back().attempt == point.attempt && chunks_.back().rank == point.rank;
  if (!fits) {
    chunks_.emplace_back();
    chunks_.back().attempt = point.attempt;
    chunks_.back().rank = point.rank;
    chunks_.back().guessed = point.guessed;
    chunks_.back().from = from;
  }
  SeriesChunk& chunk = chunks_.back();
  const Spot spot = SpotOf(point);
  const SeriesChunk::Moment moment{spot.wall_ns, spot.step.value_or(0)};
  if (chunk.count++ == 0) {
    chunk.first = spot;
    chunk.earliest = chunk.latest = moment;
  } else {
    chunk.earliest = std::min(chunk.earliest, moment);
    chunk.latest = std::max(chunk.latest, moment);
    chunk.ordered = chunk.ordered && Follows(chunk.last, spot);
    chunk.by_time = chunk.by_time && spot.wall_ns >= chunk.last.wall_ns;
  }
  chunk.only_zero = chunk.only_zero && spot.step.value_or(0) == 0;
  chunk.last = spot;
  chunk.to = to;
  if (spot.step) {
    chunk.first_step = std::min(chunk.first_step.value_or(*spot.step), *spot.step);
    chunk.last_step = std::max(chunk.last_step.value_or(*spot.step), *spot.step);
  } else {
    chunk.has_stepless = true;
  }
  if (!std::isfinite(spot.value)) {
    if (!chunk.has_odd) chunk.odd = spot;
    chunk.has_odd = true;
    return;
  }
  if (!chunk.has_extremes || spot.value < chunk.min.value) chunk.min = spot;
  if (!chunk.has_extremes || spot.value > chunk.max.value) chunk.max = spot;
  chunk.has_extremes = true;
}

bool HaveNoSteps(const std::vector<SeriesChunk>& chunks) {
  uint64_t points = 0;
  for (const auto& chunk : chunks) {
    if (!chunk.only_zero) return false;
    points += chunk.count;
  }
  return points > 1;
}

void KeepSpeakers(std::vector<SeriesChunk>& chunks) {
  const auto zero = [](const SeriesChunk& chunk) { return chunk.rank == 0; };
  if (std::any_of(chunks.begin(), chunks.end(), zero)) std::erase_if(chunks, std::not_fn(zero));
}

SamplePlan PlanSample(std::vector<SeriesChunk> chunks, const SampleQuery& query,
                      const Resumes& resumes) {
  SamplePlan plan;
  KeepSpeakers(chunks);
  plan.stepless = HaveNoSteps(chunks);
  if (plan.stepless) {
    for (auto& chunk : chunks) DropSteps(chunk);
  }
  plan.by_chunks = !chunks.empty() && IsPlain(chunks);
  if (!plan.by_chunks) return plan;
  plan.guessed = chunks.front().guessed;
  plan.rank = chunks.front().rank;
  plan.highest = HighestSteps(chunks, resumes);
  const bool ranged = query.from_step || query.to_step;
  const int64_t low = query.from_step.value_or(std::numeric_limits<int64_t>::min());
  const int64_t high = query.to_step.value_or(std::numeric_limits<int64_t>::max());
  for (auto& chunk : chunks) {
    const int64_t most = std::min(high, plan.highest.at(chunk.attempt));
    const bool stepless = !chunk.first.step;
    const bool stepped = chunk.first_step.has_value();
    const bool none =
        (!stepped || *chunk.first_step > most || *chunk.last.step < low) && (!stepless || ranged);
    if (none) continue;
    plan.points += chunk.count;
    // In order, so `first` has no step if any has none, and `last` has the greatest.
    const bool whole = (!stepped || (*chunk.first_step >= low && *chunk.last.step <= most)) &&
                       (!stepless || !ranged);
    (whole ? plan.whole : plan.partly).push_back(chunk);
  }
  return plan;
}

namespace {

// Whether a point of the plan's attempts counts and is asked for.
bool Counts(const SamplePlan& plan, const SampleQuery& query, const SeriesPoint& point) {
  if (point.guessed != plan.guessed || point.rank != plan.rank) return false;
  if (!point.step) return !query.from_step && !query.to_step;
  const auto bound = plan.highest.find(point.attempt);
  return bound != plan.highest.end() && *point.step <= bound->second &&
         (!query.from_step || *point.step >= *query.from_step) &&
         (!query.to_step || *point.step <= *query.to_step);
}

}  // namespace

void KeepCounted(const SamplePlan& plan, const SampleQuery& query,
                 std::vector<SeriesPoint>& points) {
  if (plan.stepless) {
    for (auto& point : points) point.step.reset();
  }
  std::erase_if(points, [&](const SeriesPoint& point) { return !Counts(plan, query, point); });
  SortPoints(points);
}

// Parts have the same number of points, not of steps: a series that is denser in one place keeps
// more points there.
std::vector<SeriesPoint> Thin(const std::vector<SeriesPoint>& points, size_t width) {
  width = std::max<size_t>(width, 1);
  if (points.size() <= 2 * width) return points;
  std::vector<SeriesPoint> kept = {points.front()};
  Extremes part;
  size_t filled = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    const size_t at = i * width / points.size();
    if (at != filled) {
      part.Flush(kept);
      filled = at;
    }
    part.Add(points[i]);
  }
  part.Flush(kept);
  if (!Same(kept.back(), points.back())) kept.push_back(points.back());
  return kept;
}

std::vector<SeriesPoint> ThinChunks(const std::vector<SeriesChunk>& whole,
                                    std::vector<SeriesPoint> read, size_t width) {
  std::vector<SeriesPoint> found = Thin(read, width);
  found.reserve(found.size() + 3 * std::min(whole.size(), width + 1) + 2);
  const SeriesChunk* first = nullptr;
  const SeriesChunk* last = nullptr;
  const size_t each = std::max<size_t>(1, whole.size() / std::max<size_t>(width, 1));
  Extremes part;
  for (size_t i = 0; i < whole.size(); ++i) {
    const SeriesChunk& chunk = whole[i];
    if (chunk.has_extremes) {
      part.Add(SpotPoint(chunk, chunk.min));
      part.Add(SpotPoint(chunk, chunk.max));
    }
    if (chunk.has_odd) part.Add(SpotPoint(chunk, chunk.odd));
    if ((i + 1) % each == 0) part.Flush(found);
    // By a reader's order, not by arrival: points without steps come first, of whichever attempt.
    if (!first || InOrder(SpotPoint(chunk, chunk.first), SpotPoint(*first, first->first))) {
      first = &chunk;
    }
    if (!last || InOrder(SpotPoint(*last, last->last), SpotPoint(chunk, chunk.last))) last = &chunk;
  }
  part.Flush(found);
  if (first) found.insert(found.begin(), SpotPoint(*first, first->first));
  if (last) found.push_back(SpotPoint(*last, last->last));
  // Mostly in order already, as attempts come one after the other.
  if (!std::is_sorted(found.begin(), found.end(), InOrder)) {
    std::sort(found.begin(), found.end(), InOrder);
  }
  found.erase(std::unique(found.begin(), found.end(), Same), found.end());
  return found;
}

}  // namespace athanor
