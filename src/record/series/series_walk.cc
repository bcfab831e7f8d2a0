#include "record/series/series_walk.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/text/format.h"

namespace athanor {
namespace {

constexpr int64_t kLow = std::numeric_limits<int64_t>::min();
constexpr int64_t kHigh = std::numeric_limits<int64_t>::max();
constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
constexpr size_t kRoom = 4096;  // so many points more before they are put in order again

// Doubles as integers that compare like them: the bits of a positive one rise with it, those of a
// negative one fall. Both zeros are the same.
uint64_t Ordered(double value) {
  const auto bits = std::bit_cast<uint64_t>(value == 0 ? 0.0 : value);
  return (bits >> 63) != 0 ? ~bits : bits | (uint64_t{1} << 63);
}

// By attempt, the greatest step that is not abandoned: below the first step of every later attempt,
// and not beyond the step at which one resumed.
std::map<uint32_t, std::optional<int64_t>> HighestWalked(const std::vector<SeriesChunk>& chunks,
                                                         const Resumes& resumes) {
  std::map<uint32_t, int64_t> first;
  std::map<uint32_t, std::optional<int64_t>> highest;
  for (const auto& chunk : chunks) {
    highest.emplace(chunk.attempt, kHigh);
    if (!chunk.first_step) continue;
    const auto [at, fresh] = first.try_emplace(chunk.attempt, *chunk.first_step);
    if (!fresh) at->second = std::min(at->second, *chunk.first_step);
  }
  for (auto& [attempt, bound] : highest) {
    for (auto later = first.upper_bound(attempt); later != first.end(); ++later) {
      if (later->second == kLow) bound.reset();
      if (bound) bound = std::min(*bound, later->second - 1);
    }
    for (auto later = resumes.upper_bound(attempt); later != resumes.end(); ++later) {
      if (bound) bound = std::min(*bound, later->second);
    }
  }
  return highest;
}

}  // namespace

std::string WalkPlace::ToString() const {
  return fmt::format("{}.{}.{}.{}.{}", stepped ? 1 : 0, first, second, third, fourth);
}

std::optional<WalkPlace> WalkPlace::Parse(std::string_view text) {
  WalkPlace place;
  int stepped = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const auto read = [&](auto& number, bool last) {
    const auto [after, error] = std::from_chars(at, end, number);
    at = after;
    if (error != std::errc()) return false;
    if (last) return at == end;
    return at != end && *at++ == '.';
  };
  if (!read(stepped, false) || !read(place.first, false) || !read(place.second, false) ||
      !read(place.third, false) || !read(place.fourth, true) || stepped < 0 || stepped > 1) {
    return std::nullopt;
  }
  place.stepped = stepped == 1;
  return place;
}

SeriesWalk::SeriesWalk(const std::vector<SeriesChunk>& chunks, WalkOrder order, bool with_abandoned,
                       const Resumes& resumes, OpenReader open)
    : order_(order), with_abandoned_(with_abandoned), open_(std::move(open)) {
  if (chunks.empty()) return;
  guessed_ = chunks.front().guessed;
  only_rank_zero_ =
      std::any_of(chunks.begin(), chunks.end(), [](const auto& chunk) { return chunk.rank == 0; });
  std::vector<SeriesChunk> speaking;
  const std::vector<SeriesChunk>* speakers = &chunks;
  const auto silent = [this](const auto& chunk) { return only_rank_zero_ && chunk.rank != 0; };
  if (std::any_of(chunks.begin(), chunks.end(), silent)) {
    std::remove_copy_if(chunks.begin(), chunks.end(), std::back_inserter(speaking), silent);
    speakers = &speaking;
  }
  stepless_ = HaveNoSteps(*speakers);
  if (!stepless_) highest_ = HighestWalked(*speakers, resumes);
  extents_.reserve(speakers->size());
  for (const auto& chunk : *speakers) extents_.push_back(ExtentOf(chunk));
  const auto below = [](const Extent& a, const Extent& b) { return a.least < b.least; };
  if (!std::is_sorted(extents_.begin(), extents_.end(), below)) {
    std::stable_sort(extents_.begin(), extents_.end(), below);
  }
}

SeriesWalk::Extent SeriesWalk::ExtentOf(const SeriesChunk& chunk) const {
  Extent extent{{}, {}, chunk.from, chunk.to};
  if (order_ == WalkOrder::kByTime) {
    extent.least = {false, chunk.earliest.wall_ns, chunk.earliest.step};
    extent.most = {false, chunk.latest.wall_ns, chunk.latest.step};
    return extent;
  }
  const bool without = stepless_ || chunk.has_stepless;
  const bool with = !stepless_ && chunk.last_step;
  extent.least =
      without ? Bound{false, 0, chunk.earliest.wall_ns} : Bound{true, *chunk.first_step, kLow};
  extent.most = with ? Bound{true, *chunk.last_step, kHigh} : Bound{false, 0, chunk.latest.wall_ns};
  return extent;
}

WalkPlace SeriesWalk::PlaceOf(const SeriesPoint& point, uint64_t arrival) const {
  if (order_ == WalkOrder::kByStep) {
    return {point.step.has_value(), point.step.value_or(0), point.wall_ns,
            uint64_t{point.attempt} << 32 | point.rank, arrival};
  }
  const bool nan = std::isnan(point.value);
  return {false, point.wall_ns, point.step.value_or(0), nan ? uint64_t{1} : 0,
          nan ? 0 : Ordered(point.value)};
}

// After which place the next call goes on when `last` was the last one returned. All points of a
// step are returned together, so it is the end of the step.
WalkPlace SeriesWalk::EndOf(const Entry& last) const {
  if (!last.place.stepped) return last.place;
  return {true, last.place.first, kHigh, kLast, kLast};
}

bool SeriesWalk::Passed(const Extent& extent) const {
  if (!after_) return false;
  if (after_->stepped) return !extent.most.stepped || extent.most.first <= after_->first;
  return extent.most < Bound{after_->stepped, after_->first, after_->second};
}

// Whether the point is returned; it is changed to what a reader gets.
bool SeriesWalk::Takes(SeriesPoint& point) const {
  if (point.guessed != guessed_ || (only_rank_zero_ && point.rank != 0)) return false;
  if (stepless_) point.step.reset();
  if (!point.step) return true;
  const auto bound = highest_.find(point.attempt);
  if (bound == highest_.end()) return false;
  point.abandoned = !bound->second || *point.step > *bound->second;
  return with_abandoned_ || !point.abandoned;
}

// Sorts them and removes duplicates; by step, keeps the last of those that replace each other.
void SeriesWalk::Tidy(Entries& entries) const {
  const auto below = [](const Entry& a, const Entry& b) { return a.place < b.place; };
  if (!std::is_sorted(entries.begin(), entries.end(), below)) {
    std::stable_sort(entries.begin(), entries.end(), below);
  }
  const auto same = [](const Entry& a, const Entry& b) { return a.place == b.place; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  if (order_ == WalkOrder::kByTime) return;
  auto kept = entries.begin();
  for (auto at = entries.begin(); at != entries.end();) {
    auto end = at + 1;
    while (at->place.stepped && end != entries.end() && end->place.stepped &&
           end->place.first == at->place.first) {
      ++end;
    }
    if (end - at > 1) {
      // From the end: the first one seen of an attempt and rank is its newest. What is kept moves
      // to the end of the step, in order.
      std::set<uint64_t> seen;  // attempts and ranks
      auto newest = end;
      for (auto from = end; from != at;) {
        --from;
        if (seen.insert(from->place.third).second && --newest != from) *newest = *from;
      }
      at = newest;
    }
    kept = kept == at ? end : std::move(at, end, kept);
    at = end;
  }
  entries.erase(kept, entries.end());
}

// Keeps the first `most` of a tidy list, and those at the same step as the last of them. Returns up
// to where points are needed then; none: the list is shorter.
std::optional<WalkPlace> SeriesWalk::Cut(Entries& entries, size_t most) const {
  if (entries.size() < most) return std::nullopt;
  const WalkPlace end = EndOf(entries[most - 1]);
  const auto behind =
      std::partition_point(entries.begin() + static_cast<ptrdiff_t>(most), entries.end(),
                           [&end](const Entry& entry) { return entry.place <= end; });
  entries.erase(behind, entries.end());
  return end;
}

// The `most` lowest places after `after_`. Chunks come by their lowest place: as soon as enough
// points are known, those after the highest of them are dropped, and the first chunk that begins
// after it ends the search. Sorting waits until there are kRoom more, so that it is rare.
Result<SeriesWalk::Entries> SeriesWalk::Collect(size_t most) const {
  most = std::max<size_t>(most, 1);
  Entries entries;
  std::optional<WalkPlace> bound;
  const Visit take = [&](const SeriesPoint& arrived, uint64_t arrival) {
    SeriesPoint point = arrived;
    if (!Takes(point)) return;
    const WalkPlace place = PlaceOf(point, arrival);
    if ((after_ && place <= *after_) || (bound && place > *bound)) return;
    entries.push_back({place, point});
  };
  entries.reserve(std::min(most, kRoom) + kChunkPoints);
  Reader read;
  // Neighbours share blocks: what lies between these two was read already.
  uint64_t begun = 0;
  uint64_t done = 0;
  size_t full = most;
  for (size_t i = passed_; i < extents_.size(); ++i) {
    const Extent& extent = extents_[i];
    if (bound && extent.least > Bound{bound->stepped, bound->first, bound->second}) break;
    if (Passed(extent)) continue;
    if (!read) {
      ATHANOR_TRY(read, open_());
    }
    const bool joins = extent.from >= begun && extent.from <= done;
    if (!joins) begun = extent.from;
    const uint64_t from = joins ? done : extent.from;
    if (from < extent.to) {
      ATHANOR_CHECK_OK(read(from, extent.to, take));
      done = extent.to;
    }
    if (entries.size() < full) continue;
    Tidy(entries);
    if (auto end = Cut(entries, most)) bound = end;
    full = entries.size() + std::max(most, kRoom);
  }
  Tidy(entries);
  (void)Cut(entries, most);
  return entries;
}

Result<std::vector<SeriesPoint>> SeriesWalk::Next(size_t most) {
  while (passed_ < extents_.size() && Passed(extents_[passed_])) ++passed_;
  ATHANOR_TRY(const Entries entries, Collect(most));
  std::vector<SeriesPoint> points;
  points.reserve(entries.size());
  for (const auto& entry : entries) points.push_back(entry.point);
  if (!entries.empty()) after_ = EndOf(entries.back());
  return points;
}

Result<bool> SeriesWalk::More() const {
  ATHANOR_TRY(const Entries entries, Collect(1));
  return !entries.empty();
}

}  // namespace athanor
