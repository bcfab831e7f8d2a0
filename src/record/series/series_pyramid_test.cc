#include "record/series/series_pyramid.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/io/files.h"
#include "record/fault_testing.h"
#include "record/series/series_index.h"

namespace athanor {
namespace {

std::unique_ptr<SeriesStore> OpenSeries(const std::string& dir) {
  return SeriesStore::Open(
             dir,
             [](JobId, const Error& error) { ADD_FAILURE() << error.what << ": " << error.why; })
      .value();
}

using Key = std::tuple<std::optional<int64_t>, int64_t, uint64_t, uint32_t>;
Key KeyOf(const SeriesPoint& p) {
  return {p.step, p.wall_ns, std::bit_cast<uint64_t>(p.value), p.attempt};
}

bool InRange(const SeriesPoint& p, const SampleQuery& query) {
  if (!p.step) return !query.from_step && !query.to_step;
  return (!query.from_step || *p.step >= *query.from_step) &&
         (!query.to_step || *p.step <= *query.to_step);
}

// What a sample promises, against all points there are.
void ExpectSampleOf(std::vector<SeriesPoint> all, const std::vector<SeriesPoint>& sample,
                    const SampleQuery& query) {
  std::erase_if(all, [&](const auto& p) { return !InRange(p, query); });
  if (all.empty()) {
    EXPECT_TRUE(sample.empty());
    return;
  }
  ASSERT_FALSE(sample.empty());
  std::set<Key> known;
  for (const auto& point : all) known.insert(KeyOf(point));
  double min = INFINITY;
  double max = -INFINITY;
  bool odd = false;
  for (size_t i = 0; i < sample.size(); ++i) {
    ASSERT_TRUE(known.contains(KeyOf(sample[i]))) << "a point that is none";
    if (i > 0) {
      ASSERT_LE(sample[i - 1].step, sample[i].step);
    }
    if (i > 0 && !sample[i].step) {
      ASSERT_LE(sample[i - 1].wall_ns, sample[i].wall_ns);
    }
    odd |= !std::isfinite(sample[i].value);
    if (!std::isfinite(sample[i].value)) continue;
    min = std::min(min, sample[i].value);
    max = std::max(max, sample[i].value);
  }
  double true_min = INFINITY;
  double true_max = -INFINITY;
  bool true_odd = false;
  for (const auto& point : all) {
    true_odd |= !std::isfinite(point.value);
    if (!std::isfinite(point.value)) continue;
    true_min = std::min(true_min, point.value);
    true_max = std::max(true_max, point.value);
  }
  EXPECT_EQ(min, true_min);
  EXPECT_EQ(max, true_max);
  EXPECT_EQ(odd, true_odd);
  EXPECT_EQ(sample.front().step, all.front().step);
  EXPECT_EQ(sample.back().step, all.back().step);
  EXPECT_EQ(sample.back().wall_ns, all.back().wall_ns);
  EXPECT_LE(sample.size(), 6 * query.width + 2 * kChunkPoints);
}

// To be compared, NaN with NaN.
std::vector<std::tuple<std::optional<int64_t>, int64_t, uint64_t>> Bits(
    const std::vector<SeriesPoint>& points) {
  std::vector<std::tuple<std::optional<int64_t>, int64_t, uint64_t>> bits;
  for (const auto& p : points) {
    bits.emplace_back(p.step, p.wall_ns, std::bit_cast<uint64_t>(p.value));
  }
  return bits;
}

// Planted bugs: forget in HighestSteps that a later attempt's first step ends an earlier one; keep
// the chunks of guesses when a logged point comes (Add), or let points at step 0 that are read keep
// it (KeepCounted).
TEST(SeriesPyramid, ASampleKeepsFirstLastAndExtremesOfWhateverCounts) {
  Dice dice(TestSeed());
  for (int round = 0; round < 24; ++round) {
    const TestDir dir;
    const JobId job = JobId::New();
    auto store = OpenSeries(dir.path());
    Resumes resumes;
    uint32_t attempt = 1;
    int64_t step = -5;
    std::map<uint32_t, uint64_t> seq;
    const bool disorder = dice.Once(4);
    const bool zeros = dice.Once(4);
    const bool late = dice.Once(2);  // times that fall
    const int guesses = dice.Once(3) ? 1 + static_cast<int>(dice.Below(59)) : 0;
    for (int batches = 0; batches < 60; ++batches) {
      PointBatch batch;
      if (dice.Once(25)) {
        ++attempt;
        step -= static_cast<int64_t>(dice.Below(900));
        if (dice.Once(2)) resumes[attempt] = step;
      }
      batch.attempt = attempt;
      const bool guessed = batches < guesses || (guesses > 0 && dice.Once(4));
      batch.channel = guessed ? kGuessChannel + 1 : 0;
      for (uint64_t n = dice.Below(1200); n > 0; --n) {
        if (!disorder || !dice.Once(50)) ++step;
        const double value = dice.Once(700) ? std::nan("") : static_cast<double>(dice.Bits() >> 40);
        const bool stepless = attempt == 1 && batches == 0;
        batch.items.push_back(
            {++seq[attempt],
             {dice.Once(3) ? "other" : "x",
              stepless ? std::nullopt : std::optional(zeros ? 0 : step),
              step * 10 - (late ? static_cast<int64_t>(dice.Below(9'000)) : 0), value}});
      }
      ASSERT_TRUE(store->Append(job, batch));
      if (dice.Once(30)) {
        ASSERT_TRUE(store->Sync().ok());
      }
      if (dice.Once(30)) store = OpenSeries(dir.path());
    }
    const auto all = store->Read(job, "x", false, resumes).value();
    for (int tries = 0; tries < 6; ++tries) {
      SampleQuery query;
      query.width = 1 + dice.Below(300);
      if (tries > 1) query.from_step = static_cast<int64_t>(dice.Below(20'000));
      if (tries > 2)
        query.to_step = query.from_step.value_or(0) + static_cast<int64_t>(dice.Below(20'000));
      const auto sample = store->Sample(job, "x", query, resumes);
      ASSERT_TRUE(sample) << sample.error().what;
      ASSERT_NO_FATAL_FAILURE(ExpectSampleOf(all, *sample, query)) << "seed " << TestSeed();
      if (HasFailure()) return;
      // The immediate answer is the same as that of Sample, which may read files.
      if (const auto at_hand = store->SampleAtHand(job, "x", query, resumes)) {
        EXPECT_EQ(Bits(*at_hand), Bits(*sample)) << "seed " << TestSeed();
      }
    }
  }
}

// Planted bug: take chunks whose times fall for ordered (DropSteps).
TEST(SeriesPyramid, TheLastOfASampleWithoutStepsIsTheNewest) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  PointBatch batch;
  for (uint64_t i = 1; i <= 20'000; ++i) {
    const int64_t wall_ns = i == 20'000 ? 5 : static_cast<int64_t>(i);
    batch.items.push_back({i, {"x", 0, wall_ns, 1}});
  }
  ASSERT_TRUE(store->Append(job, batch));
  const auto sample = store->Sample(job, "x", {{}, {}, 100}).value();
  EXPECT_EQ(sample.back().wall_ns, 19'999);
  EXPECT_FALSE(sample.back().step);
}

// Planted bug: read only the chunks of the last attempt, or leave guesses among the points.
TEST(SeriesPyramid, AShortHistoryIsTheHistory) {
  Dice dice(TestSeed());
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  EXPECT_TRUE(store->ShortHistory(job, "x", 10).value().value().empty());
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> seq;
  uint32_t attempt = 1;
  for (int batches = 0; batches < 80; ++batches) {
    if (dice.Once(20)) ++attempt;
    PointBatch batch;
    batch.attempt = attempt;
    batch.rank = static_cast<uint32_t>(dice.Below(2));
    batch.channel = dice.Once(3) ? kGuessChannel : 7;
    for (uint64_t n = dice.Below(200); n > 0; --n) {
      batch.items.push_back(
          {++seq[{batch.rank, batch.channel}],
           {dice.Once(3) ? "other" : "x", static_cast<int64_t>(attempt * 1'000 + dice.Below(900)),
            static_cast<int64_t>(dice.Below(50)), static_cast<double>(n)}});
    }
    ASSERT_TRUE(store->Append(job, batch));
    if (dice.Once(30)) store = OpenSeries(dir.path());
  }
  const auto all = store->History(job, "x", {{2, 1'800}}).value();
  ASSERT_GT(all.size(), 100u);
  EXPECT_EQ(Bits(store->ShortHistory(job, "x", 1'000'000, {{2, 1'800}}).value().value()),
            Bits(all));
  EXPECT_FALSE(store->ShortHistory(job, "x", 100, {{2, 1'800}}).value().has_value());
}

TEST(SeriesPyramid, FewPointsComeAsTheyAre) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  PointBatch batch;
  for (uint64_t i = 1; i <= 100; ++i) {
    batch.items.push_back({i, {"x", static_cast<int64_t>(i), 0, static_cast<double>(i)}});
  }
  ASSERT_TRUE(store->Append(job, batch));
  EXPECT_EQ(store->Sample(job, "x", {{}, {}, 100})->size(), 100u);
  EXPECT_EQ(store->Sample(job, "x", {11, 20, 100})->size(), 10u);
  EXPECT_EQ(store->Sample(job, "y", {}).error().code, ErrorCode::kNotFound);
}

PointBatch Many(uint64_t from, uint64_t count) {
  PointBatch batch;
  for (uint64_t i = from; i < from + count; ++i) {
    batch.items.push_back({i,
                           {"x", static_cast<int64_t>(i), static_cast<int64_t>(i) * 1000,
                            std::sin(static_cast<double>(i) / 1000)}});
  }
  return batch;
}

std::string IndexPath(const std::string& dir, JobId job) {
  const std::string id = job.ToString();
  return dir + "/" + id.substr(id.size() - 2) + "/" + id + ".index";
}

// Planted bug: leave the points that came after the index out, or count them twice.
TEST(SeriesIndex, AJobThatWasIndexedOpensAsIfItsFileWereRead) {
  const TestDir dir;
  const JobId job = JobId::New();
  std::vector<SeriesSummary> before;
  {
    auto store = OpenSeries(dir.path());
    ASSERT_TRUE(store->Append(job, Many(1, 120'000)));
    ASSERT_TRUE(store->Sync().ok());
    ASSERT_TRUE(Exists(IndexPath(dir.path(), job)));
    ASSERT_TRUE(store->Append(job, Many(120'001, 500)));
    before = store->Summaries(job).value();
  }
  auto store = OpenSeries(dir.path());
  EXPECT_FALSE(store->SampleAtHand(job, "x", {{}, {}, 200})) << "a file was read for it";
  const auto after = store->Summaries(job).value();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].count, before[0].count);
  EXPECT_EQ(after[0].last, before[0].last);
  EXPECT_EQ(after[0].min, before[0].min);
  EXPECT_EQ(store->Append(job, Many(120'400, 101)).value(), 0u) << "a point was stored twice";
  EXPECT_EQ(store->Read(job, "x")->size(), 120'500u);
  const auto sample = store->Sample(job, "x", {{}, {}, 200}).value();
  ExpectSampleOf(store->Read(job, "x").value(), sample, {{}, {}, 200});
  EXPECT_LT(sample.size(), 2000u);
  const auto at_hand = store->SampleAtHand(job, "x", {{}, {}, 200});
  ASSERT_TRUE(at_hand);
  EXPECT_EQ(Bits(*at_hand), Bits(sample));
}

// Planted bug: take an index without looking at the file's bytes before its length.
TEST(SeriesIndex, AnIndexThatDoesNotFitIsThrownAway) {
  const TestDir dir;
  const JobId job = JobId::New();
  const JobId other = JobId::New();
  {
    auto store = OpenSeries(dir.path());
    ASSERT_TRUE(store->Append(job, Many(1, 120'000)));
    ASSERT_TRUE(store->Sync().ok());
    ASSERT_TRUE(store->Remove(job).ok());
    EXPECT_FALSE(Exists(IndexPath(dir.path(), job)));
    ASSERT_TRUE(store->Append(job, Many(1, 120'000)));
    ASSERT_TRUE(store->Sync().ok());
  }
  const std::string right = ReadFile(IndexPath(dir.path(), job)).value();
  for (std::string bytes : {right.substr(0, right.size() / 2), std::string("no index"),
                            std::string(right.size(), 'x')}) {
    ASSERT_TRUE(ReplaceFile(IndexPath(dir.path(), job), bytes).ok());
    EXPECT_EQ(OpenSeries(dir.path())->Summaries(job).value().at(0).count, 120'000u);
  }
  // A file that was written again, longer than the index knows.
  {
    auto store = OpenSeries(dir.path());
    ASSERT_TRUE(store->Append(other, Many(7, 130'000)));
  }
  const std::string from = IndexPath(dir.path(), job);
  ASSERT_TRUE(ReplaceFile(IndexPath(dir.path(), other), right).ok());
  EXPECT_EQ(OpenSeries(dir.path())->Summaries(other).value().at(0).count, 130'000u);
  ASSERT_FALSE(DecodeIndex(right + "x"));
  // An index from before guesses and points at step 0 were distinguished.
  std::string old = right;
  old.replace(0, kIndexMark.size(), "ATHSIDX1");
  ASSERT_FALSE(DecodeIndex(old));
}

}  // namespace
}  // namespace athanor
