#include "record/series/series_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "record/fault_testing.h"

namespace athanor {
namespace {

auto StepKey(const SeriesPoint& p) {
  return std::tuple(p.step, p.wall_ns, std::bit_cast<uint64_t>(p.value), p.attempt, p.rank,
                    p.abandoned, p.guessed);
}

auto TimeKey(const SeriesPoint& p) {
  const bool nan = std::isnan(p.value);
  return std::tuple(p.wall_ns, p.step.value_or(0), nan, nan ? 0 : p.value);
}

// The simple way: all points, put in order, each kept once.
std::vector<SeriesPoint> ByTime(std::vector<SeriesPoint> points) {
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return TimeKey(a) < TimeKey(b); });
  points.erase(std::unique(points.begin(), points.end(),
                           [](const auto& a, const auto& b) { return TimeKey(a) == TimeKey(b); }),
               points.end());
  return points;
}

// A random history: some rounds have late times, falling steps, a silent rank 0.
class History {
 public:
  explicit History(Dice& dice) : dice_(dice) {
    late_ = dice.Below(4) * dice.Below(400);  // how far times go back and forth
    back_ = dice.Below(3) * dice.Below(600);  // and steps
    ranks_ = dice.Once(3) ? 3 : 1;
    silent_ = dice.Once(2);  // rank 0 says nothing
    kind_ = dice.Below(5);
    attempts_ = 1 + static_cast<uint32_t>(dice.Below(3));
    for (uint32_t attempt = 2; attempt <= attempts_; ++attempt) {
      if (dice.Once(2)) resumes_[attempt] = static_cast<int64_t>(dice.Below(3000));
    }
  }

  PointBatch Next(uint32_t attempt) {
    PointBatch batch;
    batch.attempt = attempt;
    batch.rank = static_cast<uint32_t>(dice_.Below(ranks_)) + (ranks_ > 1 && silent_ ? 1 : 0);
    batch.channel = dice_.Once(6) ? kGuessChannel : static_cast<uint32_t>(dice_.Below(2));
    for (uint64_t i = 1 + dice_.Below(300); i > 0; --i) {
      ++seq_;
      ++now_;
      PointBatch::Item item;
      item.seq = seq_;
      item.point.name = dice_.Once(3) ? "other" : "x";
      item.point.wall_ns = kind_ == 1 ? 5 : Around(now_, late_);
      item.point.value = ValueOf();
      if (kind_ == 2) item.point.step = 0;
      if (kind_ == 3 && !dice_.Once(4)) item.point.step = Around(now_, back_);
      if (kind_ < 2 || kind_ == 4) item.point.step = Around(now_, back_);
      if (kind_ == 4 && dice_.Once(200)) {
        item.point.step = dice_.Once(2) ? std::numeric_limits<int64_t>::min()
                                        : std::numeric_limits<int64_t>::max();
      }
      batch.items.push_back(std::move(item));
    }
    return batch;
  }
  uint32_t attempts() const { return attempts_; }
  const Resumes& resumes() const { return resumes_; }
  void StartAttempt() { now_ = static_cast<int64_t>(dice_.Below(static_cast<uint64_t>(now_) + 1)); }

 private:
  int64_t Around(int64_t at, uint64_t by) {
    return by == 0 ? at : at - static_cast<int64_t>(dice_.Below(by));
  }
  double ValueOf() {
    switch (dice_.Below(12)) {
      case 0:
        return std::numeric_limits<double>::quiet_NaN();
      case 1:
        return -std::numeric_limits<double>::infinity();
      case 2:
        return std::numeric_limits<double>::infinity();
      default:
        return static_cast<double>(dice_.Below(5)) - 2;
    }
  }

  Dice& dice_;
  uint64_t late_ = 0;
  uint64_t back_ = 0;
  uint64_t ranks_ = 1;
  bool silent_ = false;
  uint64_t kind_ = 0;
  uint32_t attempts_ = 1;
  Resumes resumes_;
  uint64_t seq_ = 0;
  int64_t now_ = 1;
};

// In pieces of any size, each from the place where the one before ended: by the same walk, or by a
// new one, as pages are.
std::vector<SeriesPoint> Walked(const SeriesStore& store, JobId job, WalkOrder order,
                                bool with_abandoned, const Resumes& resumes, Dice& dice) {
  auto walk = store.Walk(job, "x", order, with_abandoned, resumes).value();
  std::vector<SeriesPoint> all;
  for (;;) {
    const size_t most = 1 + dice.Below(dice.Once(3) ? 5000 : 300);
    const bool more = walk.More().value();
    const auto points = walk.Next(most).value();
    EXPECT_EQ(more, !points.empty());
    EXPECT_TRUE(order == WalkOrder::kByStep || points.size() <= most);
    all.insert(all.end(), points.begin(), points.end());
    if (points.size() < most) return all;
    if (!dice.Once(2)) continue;
    const auto place = WalkPlace::Parse(walk.place()->ToString());
    EXPECT_EQ(place, walk.place());
    walk = store.Walk(job, "x", order, with_abandoned, resumes).value();
    walk.GoOnFrom(*place);
  }
}

// Planted bugs: Cut within a step, take `earliest` of the first point instead of the least, leave
// out the resumes in HighestSteps, pass an extent whose last place is that of the place.
TEST(SeriesWalk, GivesWhatReadingAllGivesWhateverWasLogged) {
  Dice dice(TestSeed());
  for (int round = 0; round < 40; ++round) {
    const TestDir dir;
    const JobId job = JobId::New();
    auto store = SeriesStore::Open(dir.path(), {}, dice.Once(3) ? 0 : kHeldSeriesBytes).value();
    History history(dice);
    for (uint32_t attempt = 1; attempt <= history.attempts(); ++attempt) {
      for (uint64_t batches = 1 + dice.Below(30); batches > 0; --batches) {
        ASSERT_TRUE(store->Append(job, history.Next(attempt)));
      }
      history.StartAttempt();
    }
    const auto& resumes = history.resumes();
    if (!store->Read(job, "x")) continue;
    for (const bool with_abandoned : {false, true}) {
      const auto want = store->Read(job, "x", with_abandoned, resumes).value();
      const auto have = Walked(*store, job, WalkOrder::kByStep, with_abandoned, resumes, dice);
      ASSERT_EQ(have.size(), want.size()) << round;
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(StepKey(have[i]), StepKey(want[i])) << round << " at " << i;
      }
    }
    const auto want = ByTime(store->History(job, "x", resumes).value());
    const auto have = Walked(*store, job, WalkOrder::kByTime, false, resumes, dice);
    ASSERT_EQ(have.size(), want.size()) << round;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(TimeKey(have[i]), TimeKey(want[i])) << round << " at " << i;
    }
  }
}

// Chunks one after the other, of 512 points each, without a file.
std::vector<SeriesChunk> Chunks(size_t count,
                                const std::function<SeriesPoint(uint64_t)>& point_of) {
  SeriesPyramid pyramid;
  for (uint64_t i = 0; i < count * kChunkPoints; ++i) {
    const uint64_t chunk = i / kChunkPoints;
    pyramid.Add(point_of(i), chunk, chunk + 1);
  }
  return pyramid.chunks();
}

// Planted bug: Collect without `passed_` and Passed, which reads the series from its beginning.
TEST(SeriesWalk, ReadsOnlyWhereTheNextPointsLie) {
  const auto point_of = [](uint64_t i) {
    SeriesPoint point;
    point.step = static_cast<int64_t>(i);
    point.wall_ns = static_cast<int64_t>(i / 3);  // several share a time
    return point;
  };
  for (const auto order : {WalkOrder::kByStep, WalkOrder::kByTime}) {
    size_t reads = 0;
    SeriesWalk walk(Chunks(400, point_of), order, false, {}, [&]() -> Result<SeriesWalk::Reader> {
      return [&](uint64_t from, uint64_t to, const SeriesWalk::Visit& visit) -> Status {
        reads += to - from;
        for (uint64_t i = from * kChunkPoints; i < to * kChunkPoints; ++i) visit(point_of(i), i);
        return Ok();
      };
    });
    uint64_t next = 0;
    for (size_t page = 0; page < 20; ++page) {
      reads = 0;
      const auto points = walk.Next(5000).value();
      ASSERT_EQ(points.size(), 5000u);
      for (const auto& point : points) ASSERT_EQ(point.step, static_cast<int64_t>(next++));
      EXPECT_LE(reads, 5000 / kChunkPoints + 3);
    }
  }
}

TEST(SeriesWalk, SaysWhatCouldNotBeRead) {
  const auto point_of = [](uint64_t i) {
    SeriesPoint point;
    point.step = static_cast<int64_t>(i);
    return point;
  };
  SeriesWalk walk(
      Chunks(3, point_of), WalkOrder::kByStep, false, {},
      []() -> Result<SeriesWalk::Reader> { return Fail(ErrorCode::kUnavailable, "no file"); });
  EXPECT_FALSE(walk.Next(10));
  EXPECT_FALSE(walk.More());
}

TEST(WalkPlace, IsReadAsItIsWrittenAndNothingElseIs) {
  const WalkPlace place{true, std::numeric_limits<int64_t>::min(), -1,
                        std::numeric_limits<uint64_t>::max(), 0};
  EXPECT_EQ(WalkPlace::Parse(place.ToString()), place);
  for (const char* text :
       {"", "1", "1.2.3.4", "1.2.3.4.5.6", "2.0.0.0.0", "1.2.3.-4.5", "1.2.3.4.", "1.2.3.4.5 ",
        "x.2.3.4.5", "-1.2.3.4.5", "0.99999999999999999999.0.0.0"}) {
    EXPECT_FALSE(WalkPlace::Parse(text)) << text;
  }
}

}  // namespace
}  // namespace athanor
