// A SeriesWalk gives the points of one name that count, in order and some at a time: its memory
// does not grow with the series. It knows from the outline (series_pyramid.h) where the next points
// can be and reads only there. If points arrived in no order, it reads the same places again for
// each call, never more at once.
//
// It covers what was there when it was made, not points that arrive later. A walk from the position
// where another ended continues after it.
//
// Threads: one at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/series/series_pyramid.h"
#include "record/series/series_store.h"

namespace athanor {

enum class WalkOrder {
  kByStep,  // as SeriesStore::Read: one for each step of an attempt and rank
  // As SeriesStore::History, but by time, step and value (NaN last); points that are equal in these
  // are returned once.
  kByTime,
};

// A position in such an order. Any two can be compared; only the walk knows what the numbers mean.
struct WalkPlace {
  bool stepped = false;
  int64_t first = 0;
  int64_t second = 0;
  uint64_t third = 0;
  uint64_t fourth = 0;
  auto operator<=>(const WalkPlace&) const = default;

  std::string ToString() const;
  static std::optional<WalkPlace> Parse(std::string_view text);
};

class SeriesWalk {
 public:
  // For the points of the name in some bytes of the file; `arrival` identifies them, and increases
  // from one to the next.
  using Visit = std::function<void(const SeriesPoint& point, uint64_t arrival)>;
  using Reader = std::function<Status(uint64_t from, uint64_t to, const Visit& visit)>;
  using OpenReader = std::function<Result<Reader>()>;  // called once for each Next

  // For `chunks`, in order of arrival. Abandoned points are returned only if asked for.
  SeriesWalk(const std::vector<SeriesChunk>& chunks, WalkOrder order, bool with_abandoned,
             const Resumes& resumes, OpenReader open);

  // The next ones: `most`, fewer only at the end. By step there may be a few more, because those of
  // one step are returned together.
  Result<std::vector<SeriesPoint>> Next(size_t most);
  // Whether Next would return any.
  Result<bool> More() const;

  // After the last point returned; none at the beginning.
  const std::optional<WalkPlace>& place() const { return after_; }
  void GoOnFrom(const WalkPlace& place) { after_ = place; }

 private:
  struct Bound {  // the first part of a place
    bool stepped = false;
    int64_t first = 0;
    int64_t second = 0;
    auto operator<=>(const Bound&) const = default;
  };
  struct Extent {  // a chunk
    Bound least;
    Bound most;
    uint64_t from = 0;
    uint64_t to = 0;
  };
  struct Entry {
    WalkPlace place;
    SeriesPoint point;
  };
  using Entries = std::vector<Entry>;

  Extent ExtentOf(const SeriesChunk& chunk) const;
  WalkPlace PlaceOf(const SeriesPoint& point, uint64_t arrival) const;
  WalkPlace EndOf(const Entry& last) const;
  bool Passed(const Extent& extent) const;
  bool Takes(SeriesPoint& point) const;
  Result<Entries> Collect(size_t most) const;
  void Tidy(Entries& entries) const;
  std::optional<WalkPlace> Cut(Entries& entries, size_t most) const;

  WalkOrder order_;
  bool with_abandoned_;
  bool guessed_ = false;  // what all of them are
  bool only_rank_zero_ = false;
  bool stepless_ = false;  // step 0 is none
  // By attempt, the greatest step that counts; nullopt: none.
  std::map<uint32_t, std::optional<int64_t>> highest_;
  std::vector<Extent> extents_;  // by `least`
  size_t passed_ = 0;            // of them, at the front
  OpenReader open_;
  std::optional<WalkPlace> after_;
};

}  // namespace athanor
