#include "record/series/series_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "base/io/files.h"
#include "record/fault_testing.h"
#include "record/series/series_frames.h"
#include "record/series/series_places.h"
#include "record/series/series_walk.h"

namespace athanor {
namespace {

PointBatch::Item Item(uint64_t seq, std::string name, std::optional<int64_t> step, double value,
                      int64_t wall_ns = 0) {
  return {seq, {std::move(name), step, wall_ns, value}};
}

std::unique_ptr<SeriesStore> OpenSeries(const std::string& dir) {
  return SeriesStore::Open(
             dir,
             [](JobId, const Error& error) { ADD_FAILURE() << error.what << ": " << error.why; })
      .value();
}

TEST(SeriesStore, KeepsEveryBitOfEveryValue) {
  const TestDir dir;
  const JobId job = JobId::New();
  const std::vector<uint64_t> bits = {
      std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity()),
      std::bit_cast<uint64_t>(-std::numeric_limits<double>::infinity()),
      0x7FF8000000000000,  // quiet NaN
      0xFFF8000000000ABC,  // negative, with a payload
      0x7FF0000000000001,  // signalling
      0x8000000000000000,  // minus zero
      1,                   // the least denormal
      std::bit_cast<uint64_t>(0.1)};
  PointBatch batch;
  for (size_t i = 0; i < bits.size(); ++i) {
    batch.items.push_back(Item(i, "x", static_cast<int64_t>(i), std::bit_cast<double>(bits[i])));
  }
  ASSERT_EQ(OpenSeries(dir.path())->Append(job, batch).value(), bits.size());
  const auto points = OpenSeries(dir.path())->Read(job, "x").value();
  ASSERT_EQ(points.size(), bits.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(points[i].value), bits[i]) << i;
  }
}

TEST(SeriesStore, KeepsStepsAndTimesOfAll64Bits) {
  const TestDir dir;
  const JobId job = JobId::New();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> steps = {kMin, -1, 0, (1LL << 53) + 1, kMax - 1, kMax};
  const auto time_of = [](int64_t step) { return step ^ kMax; };
  PointBatch batch;
  uint64_t seq = std::numeric_limits<uint64_t>::max() - steps.size();
  // Backwards, so that each difference is tried with both signs.
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    batch.items.push_back(Item(++seq, "x", *step, 1, time_of(*step)));
  }
  batch.attempt = batch.rank = batch.channel = std::numeric_limits<uint32_t>::max();
  ASSERT_EQ(OpenSeries(dir.path())->Append(job, batch).value(), steps.size());
  const auto points = OpenSeries(dir.path())->Read(job, "x").value();
  ASSERT_EQ(points.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(points[i].step, steps[i]);
    EXPECT_EQ(points[i].wall_ns, time_of(steps[i]));
    EXPECT_EQ(points[i].attempt, std::numeric_limits<uint32_t>::max());
  }
}

// What was sent, and what must be there: the model of the property tests.
class Sender {
 public:
  explicit Sender(Dice& dice) : dice_(dice) {}

  // New points of one channel, some of them sent before, in any order within the batch.
  PointBatch Next() {
    const uint32_t channel = static_cast<uint32_t>(dice_.Below(3));
    auto& sent = sent_[channel];
    const size_t back = dice_.Below(std::min<size_t>(sent.size(), 40) + 1);
    PointBatch batch;
    batch.channel = channel;
    batch.items.assign(sent.end() - static_cast<long>(back), sent.end());
    for (uint64_t i = dice_.Below(30); i > 0; --i) {
      last_seq_ += 1 + dice_.Below(3);
      const auto step = static_cast<int64_t>(last_seq_);
      batch.items.push_back(Item(last_seq_, "m" + std::to_string(dice_.Below(4)), step,
                                 std::bit_cast<double>(dice_.Bits() >> 12), step * 7));
      sent.push_back(batch.items.back());
      ++fresh_;
    }
    for (size_t i = batch.items.size(); i > 1; --i) {
      if (dice_.Once(4)) std::swap(batch.items[i - 1], batch.items[dice_.Below(i)]);
    }
    history_.push_back(batch);
    return batch;
  }
  // Something that was sent before, whole.
  const PointBatch& Again() { return history_[dice_.Below(history_.size())]; }
  size_t TakeFresh() { return std::exchange(fresh_, 0); }

  void ExpectIn(const SeriesStore& store, JobId job) const {
    std::map<std::string, std::map<int64_t, const Point*>> expected;
    for (const auto& [channel, items] : sent_) {
      for (const auto& item : items) expected[item.point.name][*item.point.step] = &item.point;
    }
    for (const auto& [name, points] : expected) {
      const auto found = store.Read(job, name).value();
      ASSERT_EQ(found.size(), points.size()) << name;
      auto want = points.begin();
      for (const auto& point : found) {
        ASSERT_EQ(point.step, want->first);
        ASSERT_EQ(point.value, want->second->value);
        ASSERT_EQ(point.wall_ns, want->second->wall_ns);
        ++want;
      }
    }
    const auto summaries = store.Summaries(job).value();
    ASSERT_EQ(summaries.size(), expected.size());
    for (const auto& summary : summaries) {
      EXPECT_EQ(summary.count, expected[summary.name].size());
      EXPECT_EQ(summary.last_step, expected[summary.name].rbegin()->first);
    }
  }

 private:
  Dice& dice_;
  std::map<uint32_t, std::vector<PointBatch::Item>> sent_;
  std::vector<PointBatch> history_;
  uint64_t last_seq_ = 0;
  size_t fresh_ = 0;
};

// Planted bug that turns it red: `>=` for `>` in FreshItems, or last_seq not read at open.
TEST(SeriesStore, StoresEachPointOnceHoweverOftenAndInWhatOrderItIsSent) {
  Dice dice(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const TestDir dir;
    const JobId job = JobId::New();
    Sender sender(dice);
    auto store = OpenSeries(dir.path());
    for (int i = 0; i < 60; ++i) {
      const PointBatch batch = sender.Next();
      ASSERT_EQ(store->Append(job, batch).value(), sender.TakeFresh());
      if (dice.Once(3)) {
        ASSERT_EQ(store->Append(job, sender.Again()).value(), 0u);
      }
      if (dice.Once(10)) store->Close(job);
      if (dice.Once(15)) store = OpenSeries(dir.path());
      if (dice.Once(20)) {
        ASSERT_TRUE(store->Sync().ok());
      }
    }
    ASSERT_NO_FATAL_FAILURE(sender.ExpectIn(*store, job));
    ASSERT_NO_FATAL_FAILURE(sender.ExpectIn(*OpenSeries(dir.path()), job));
  }
}

// Steps of many attempts and ranks: the summary must equal what Read gives.
TEST(SeriesStore, SummariesAgreeWithThePointsWhateverAttemptsDo) {
  Dice dice(TestSeed());
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> seq;
  uint32_t attempt = 1;
  int64_t step = 0;
  for (int i = 0; i < 400; ++i) {
    if (dice.Once(20)) {
      ++attempt;
      step -= static_cast<int64_t>(dice.Below(30));
    }
    PointBatch batch;
    batch.attempt = dice.Once(10) ? 1 + static_cast<uint32_t>(dice.Below(attempt)) : attempt;
    batch.rank = static_cast<uint32_t>(dice.Below(3));
    for (uint64_t n = dice.Below(5); n > 0; --n) {
      if (!dice.Once(4)) ++step;
      const char* names[] = {"all", "workers"};
      const size_t name = batch.rank == 0 ? 0 : dice.Below(2);
      batch.items.push_back(Item(++seq[{batch.attempt, batch.rank}], names[name],
                                 dice.Once(5) ? std::nullopt : std::optional(step),
                                 static_cast<double>(dice.Below(1000)),
                                 static_cast<int64_t>(dice.Below(50))));
    }
    ASSERT_EQ(store->Append(job, batch).value(), batch.items.size());
    if (dice.Once(50)) store = OpenSeries(dir.path());
    const auto summaries = store->Summaries(job).value();
    for (const auto& summary : summaries) {
      const auto points = store->Read(job, summary.name).value();
      ASSERT_EQ(summary.count, points.size());
      ASSERT_EQ(summary.last, points.back().value);
      ASSERT_EQ(summary.last_step, points.back().step);
      for (const auto& point : points) {
        ASSERT_LE(summary.min, point.value);
        ASSERT_GE(summary.max, point.value);
      }
    }
  }
}

// Planted bug: leave out the call of Heed in Summaries.
TEST(SeriesStore, ASeriesThatWasNotLoggedAgainEndsWhereTheNextAttemptResumed) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  PointBatch first;
  for (int64_t step = 1; step <= 9; ++step) {
    first.items.push_back(Item(static_cast<uint64_t>(step), step % 3 == 0 ? "rare" : "loss", step,
                               static_cast<double>(100 + step)));
  }
  ASSERT_TRUE(store->Append(job, first));
  ASSERT_EQ(store->Summaries(job).value().at(1).last, 109);
  const Resumes resumes = {{2, 4}};
  for (const bool reopened : {false, true}) {
    if (reopened) store = OpenSeries(dir.path());
    const auto summaries = store->Summaries(job, resumes).value();
    ASSERT_EQ(summaries.size(), 2u);
    EXPECT_EQ(summaries[1].name, "rare");
    EXPECT_EQ(summaries[1].count, 1u);
    EXPECT_EQ(summaries[1].last, 103);
    const auto points = store->Read(job, "rare", false, resumes).value();
    ASSERT_EQ(points.size(), 1u);
    EXPECT_EQ(points[0].step, 3);
    EXPECT_EQ(store->Read(job, "rare", true, resumes).value().size(), 3u);
  }
  ASSERT_TRUE(store->Append(job, {2, 0, 0, {Item(1, "loss", 5, 205)}}));
  EXPECT_EQ(store->Summaries(job, resumes).value().at(0).last, 205);
  EXPECT_EQ(store->Summaries(job, resumes).value().at(1).count, 1u);
}

// Planted bugs: leave guesses in KeepSpeakers, keep an index without the mark of them, or store
// more of them (Append).
TEST(SeriesStore, WhatAClientLogsTakesTheNameFromWhatWasGuessed) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  PointBatch guessed{1, 0, kGuessChannel, {}};
  for (uint64_t i = 1; i <= 120'000; ++i) {
    guessed.items.push_back(Item(i, i % 2 ? "loss" : "acc", static_cast<int64_t>(i), 0.5));
  }
  ASSERT_TRUE(store->Append(job, guessed));
  ASSERT_TRUE(store->Sync().ok());  // makes an index
  EXPECT_EQ(store->Summaries(job).value().at(1).count, 60'000u);
  ASSERT_TRUE(store->Append(
      job, {1, 0, 3, {Item(1, "loss", 200'007, 0.123456), Item(2, "loss", 200'008, 0.1)}}));
  // More of it may follow, since the agent need not know; that is not even kept.
  const PointBatch late{
      2, 0, kGuessChannel, {Item(1, "loss", 200'009, 0.7), Item(2, "acc", 200'009, 0.8)}};
  EXPECT_EQ(store->Append(job, late).value(), 1u);
  EXPECT_EQ(store->Append(job, late).value(), 0u);
  for (const bool reopened : {false, true}) {
    if (reopened) store = OpenSeries(dir.path());
    const auto summaries = store->Summaries(job).value();
    ASSERT_EQ(summaries.size(), 2u);
    EXPECT_EQ(summaries[0].count, 60'001u) << "nobody else logs it";
    EXPECT_EQ(summaries[1].count, 2u);
    EXPECT_EQ(summaries[1].last, 0.1);
    EXPECT_EQ(summaries[1].max, 0.123456);
    EXPECT_EQ(store->Read(job, "loss", true).value().size(), 2u);
    EXPECT_EQ(store->History(job, "loss").value().size(), 2u);
    EXPECT_EQ(store->Sample(job, "loss", {{}, {}, 500}).value().size(), 2u);
    EXPECT_EQ(store->Sample(job, "loss", {200'007, 200'007, 500}).value().size(), 1u);
  }
}

// As MLflow's clients log without a step. Planted bug: let CountWithoutStep keep the step of the
// first.
TEST(SeriesStore, TheLastOfManyPointsAtStepZeroIsTheNewest) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  for (uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(store->Append(
        job,
        {1, 0, 5, {Item(i, "loss", 0, 0.1 * static_cast<double>(i), static_cast<int64_t>(i))}}));
    EXPECT_EQ(store->Summaries(job).value().at(0).last, 0.1 * static_cast<double>(i));
  }
  ASSERT_TRUE(store->Append(job, {1, 0, 5, {Item(4, "loss", 0, 0.7, 2)}}));  // late
  for (const bool reopened : {false, true}) {
    if (reopened) store = OpenSeries(dir.path());
    const auto summary = store->Summaries(job).value().at(0);
    EXPECT_EQ(summary.count, 4u);
    EXPECT_EQ(summary.last, 0.1 * 3);
    EXPECT_EQ(summary.max, 0.7);
    EXPECT_EQ(store->History(job, "loss").value().size(), 4u);
  }
}

TEST(SeriesStore, NamesTheNearestSeriesWhenThereIsNone) {
  const TestDir dir;
  auto store = OpenSeries(dir.path());
  const JobId job = JobId::New();
  const auto nothing = store->Read(job, "loss");
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(store->Summaries(job).value().empty());
  ASSERT_TRUE(store->Append(job, {1, 0, 0, {Item(1, "train/loss", 1, 2)}}));
  const auto typo = store->Read(job, "train/lsos");
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().code, ErrorCode::kNotFound);
  EXPECT_NE(typo.error().hint.find("train/loss"), std::string::npos) << typo.error().hint;
}

TEST(SeriesStore, RefusesNamesItCannotKeepAndStoresNothingOfTheirBatch) {
  const TestDir dir;
  auto store = OpenSeries(dir.path());
  const JobId job = JobId::New();
  for (const auto& name : {std::string(), std::string(1025, 'n'), std::string(64 * 1024, 'n')}) {
    const auto refused =
        store->Append(job, {1, 0, 0, {Item(1, "good", 1, 1), Item(2, name, 1, 1)}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(store->Summaries(job).value().empty());
  const std::string odd("a\0b\n\xE2\x80\xAE/../x\xFF", 13);
  ASSERT_TRUE(
      store->Append(job, {1, 0, 0, {Item(1, odd, 1, 5), Item(2, std::string(1024, 'n'), 1, 6)}}));
  EXPECT_EQ(OpenSeries(dir.path())->Read(job, odd).value().at(0).value, 5);
  EXPECT_EQ(store->Read(job, std::string(1024, 'n')).value().at(0).value, 6);
}

TEST(SeriesStore, RefusesANameTooManyAndGoesOnWithTheKnownOnes) {
  const TestDir dir;
  auto store = OpenSeries(dir.path());
  const JobId job = JobId::New();
  PointBatch batch;
  for (uint64_t i = 0; i < 100'000; ++i) batch.items.push_back(Item(i, std::to_string(i), 1, 1));
  ASSERT_EQ(store->Append(job, batch).value(), 100'000u);
  const auto refused =
      store->Append(job, {1, 0, 0, {Item(100'000, "one more", 1, 1), Item(100'001, "8", 2, 3)}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().id, kTooManyNames);
  EXPECT_NE(refused.error().what.find("'one more'"), std::string::npos);
  EXPECT_EQ(store->Append(job, {1, 0, 0, {Item(100'002, "7", 2, 3)}}).value(), 1u);
  FrameMaker maker(9);
  maker.Add(1, "another", 1, 0, 1);
  maker.Add(2, "9", 5, 0, 1);
  const auto sent = store->AppendFrames(job, maker.Take());
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().id, kTooManyNames);
  for (const char* name : {"7", "8", "9"}) {
    EXPECT_EQ(store->Read(job, name).value().size(), 2u) << name;
    EXPECT_EQ(OpenSeries(dir.path())->Read(job, name).value().size(), 2u) << name;
  }
  EXPECT_FALSE(store->Read(job, "one more"));
}

TEST(SeriesStore, ForgetsARemovedJobAndTakesItUpAgain) {
  const TestDir dir;
  auto store = OpenSeries(dir.path());
  const JobId job = JobId::New();
  const JobId other = JobId::New();
  ASSERT_TRUE(store->Append(job, {1, 0, 0, {Item(9, "x", 1, 1)}}));
  ASSERT_TRUE(store->Append(other, {1, 0, 0, {Item(9, "x", 1, 2)}}));
  ASSERT_TRUE(store->Remove(job).ok());
  ASSERT_TRUE(store->Remove(job).ok());
  EXPECT_FALSE(store->Read(job, "x"));
  EXPECT_TRUE(store->Sync().ok());
  EXPECT_EQ(store->Append(job, {1, 0, 0, {Item(1, "x", 1, 3)}}).value(), 1u);
  EXPECT_EQ(store->Read(job, "x").value().at(0).value, 3);
  EXPECT_EQ(store->Read(other, "x").value().at(0).value, 2);
}

TEST(SeriesStore, HoldsFewDescriptorsAndAnyNumberOfJobs) {
  const TestDir dir;
  auto store = OpenSeries(dir.path());
  const size_t before = OpenDescriptors();
  std::vector<JobId> jobs;
  for (uint64_t i = 0; i < 300; ++i) {
    jobs.push_back(JobId::New());
    ASSERT_TRUE(store->Append(jobs.back(), {1, 0, 0, {Item(1, "x", 1, static_cast<double>(i))}}));
  }
  EXPECT_LE(OpenDescriptors(), before + 16);
  ASSERT_TRUE(store->Sync().ok());
  EXPECT_EQ(OpenDescriptors(), before);
  for (size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_EQ(store->Append(jobs[i], {1, 0, 0, {Item(1, "x", 1, -1)}}).value(), 0u);
    ASSERT_EQ(store->Read(jobs[i], "x").value().at(0).value, static_cast<double>(i));
  }
}

// Planted bug: writing on through a held descriptor of a file that is gone.
TEST(SeriesStore, PointsGoWhereTheFileIsAlsoWhenItWasTakenAwayAMomentAgo) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = OpenSeries(dir.path());
  ASSERT_TRUE(store->Append(job, {1, 0, 0, {Item(1, "x", 1, 1)}}));
  const std::string id = job.ToString();
  ASSERT_TRUE(RemoveTree(dir / id.substr(id.size() - 2) + "/" + id + ".series").ok());
  EXPECT_FALSE(store->Append(job, {1, 0, 0, {Item(2, "x", 2, 2)}}));
  ASSERT_TRUE(store->Append(job, {1, 0, 0, {Item(2, "x", 2, 2)}}));
  EXPECT_EQ(OpenSeries(dir.path())->Read(job, "x").value().at(0).value, 2);
}

// Planted bug: look only where new files go.
TEST(SeriesStore, FilesLieSpreadAndThoseOfOlderVersionsAreTakenUpWhereTheyAre) {
  const TestDir dir;
  std::map<std::string, int> folders;
  auto store = OpenSeries(dir.path());
  for (int i = 0; i < 200; ++i) {
    const JobId job = JobId::New();
    ASSERT_TRUE(store->Append(job, {1, 0, 0, {Item(1, "x", 1, 1)}}));
    ++folders[DirName(FindSeries(dir.path(), job))];
  }
  EXPECT_GT(folders.size(), 100u);
  const JobId job = JobId::New();
  ASSERT_TRUE(store->Append(job, {1, 0, 0, {Item(1, "x", 1, 1)}}));
  store.reset();
  const std::string old = OldSeriesPath(dir.path(), job);
  ASSERT_TRUE(MakeDirs(DirName(old)));
  ASSERT_EQ(::rename(SeriesPath(dir.path(), job).c_str(), old.c_str()), 0);
  store = OpenSeries(dir.path());
  EXPECT_EQ(store->Append(job, {1, 0, 0, {Item(1, "x", 1, 1), Item(2, "x", 2, 1)}}).value(), 1u);
  ASSERT_TRUE(store->Sync());
  EXPECT_EQ(FindSeries(dir.path(), job), old);
  EXPECT_EQ(OpenSeries(dir.path())->Read(job, "x").value().size(), 2u);
  ASSERT_TRUE(store->Remove(job));
  EXPECT_FALSE(Exists(old));
  EXPECT_FALSE(store->Read(job, "x"));
}

// Planted bugs: DropOutline leaves `outlined`, Outline takes no points that came while it read, or
// Trim drops a state under its user.
TEST(SeriesStore, AStoreWithoutRoomForItsStatesSaysTheSame) {
  Dice dice(TestSeed());
  for (int round = 0; round < 6; ++round) {
    const TestDir roomy_dir;
    const TestDir tight_dir;
    auto roomy = OpenSeries(roomy_dir.path());
    // At 0 each call ends with an empty store; a little more leaves states without outlines.
    auto tight = SeriesStore::Open(tight_dir.path(), {}, round % 2 == 0 ? 0 : 6000).value();
    std::vector<JobId> jobs;
    for (int i = 0; i < 5; ++i) jobs.push_back(JobId::New());
    uint64_t seq = 0;
    for (int turn = 0; turn < 120; ++turn) {
      const JobId job = jobs[dice.Below(jobs.size())];
      PointBatch batch;
      batch.channel = dice.Once(5) ? kGuessChannel : 3;
      for (uint64_t i = 1 + dice.Below(900); i > 0; --i) {
        const auto step = static_cast<int64_t>(dice.Once(9) ? dice.Below(50) : seq);
        batch.items.push_back(Item(++seq, "m" + std::to_string(dice.Below(3)), step,
                                   static_cast<double>(dice.Below(1000)), step));
      }
      ASSERT_EQ(tight->Append(job, batch).value(), roomy->Append(job, batch).value());
      if (dice.Once(3)) {
        ASSERT_TRUE(tight->Sync());
      }
      const JobId read = jobs[dice.Below(jobs.size())];
      const auto want = roomy->Summaries(read).value();
      const auto have = tight->Summaries(read).value();
      ASSERT_EQ(have.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_EQ(have[i].name, want[i].name);
        ASSERT_EQ(have[i].count, want[i].count);
        ASSERT_EQ(have[i].last, want[i].last);
        SampleQuery query;
        query.width = 20;
        const auto sample = tight->Sample(read, want[i].name, query).value();
        const auto wanted = roomy->Sample(read, want[i].name, query).value();
        ASSERT_EQ(sample.size(), wanted.size());
        for (size_t k = 0; k < wanted.size(); ++k) ASSERT_EQ(sample[k].value, wanted[k].value);
      }
    }
  }
}

// Meant for the tsan preset. Planted bug: Outline keeps the state's mutex from before it let go.
TEST(SeriesStore, CanBeReadWhileStatesComeAndGo) {
  const TestDir dir;
  auto store = SeriesStore::Open(dir.path(), {}, 20'000).value();
  std::vector<JobId> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(JobId::New());
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int kind = 0; kind < 3; ++kind) {
    readers.emplace_back([&, kind] {
      for (size_t i = 0; !done; ++i) {
        const JobId job = jobs[i % jobs.size()];
        if (kind == 0) {
          ASSERT_TRUE(store->Sync());
        } else if (auto walk = store->Walk(job, "x", WalkOrder::kByTime, false)) {
          uint64_t count = 0;
          for (;;) {
            const auto points = walk->Next(700);
            ASSERT_TRUE(points);
            for (const auto& point : *points) {
              ASSERT_EQ(point.value, static_cast<double>(++count));
            }
            if (points->empty()) break;
          }
          const auto summaries = store->Summaries(job);
          ASSERT_TRUE(summaries);
          ASSERT_GE(summaries->at(0).count, count);
        }
      }
    });
  }
  std::map<JobId, uint64_t> sent;
  for (int turn = 0; turn < 400; ++turn) {
    const JobId job = jobs[static_cast<size_t>(turn) % jobs.size()];
    PointBatch batch;
    for (int i = 0; i < 50; ++i) {
      const uint64_t seq = ++sent[job];
      batch.items.push_back(Item(seq, "x", static_cast<int64_t>(seq), static_cast<double>(seq),
                                 static_cast<int64_t>(seq)));
    }
    ASSERT_EQ(store->Append(job, batch).value(), 50u);
  }
  done = true;
  for (auto& reader : readers) reader.join();
}

// For the thread sanitizer as well: a reader sees a prefix, whole batches of it.
TEST(SeriesStore, CanBeReadWhileItIsAppendedTo) {
  const TestDir dir;
  auto store = OpenSeries(dir.path());
  const JobId job = JobId::New();
  constexpr uint64_t kBatches = 300;
  constexpr uint64_t kPerBatch = 5;
  std::atomic<bool> done = false;
  std::atomic<size_t> reads = 0;
  const auto reader = [&] {
    size_t seen = 0;
    while (!done || reads < 20) {
      const auto points = store->Read(job, "x");
      const size_t count = points ? points->size() : 0;
      ASSERT_GE(count, seen);
      ASSERT_EQ(count % kPerBatch, 0u);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(points->at(i).value, static_cast<double>(i));
      seen = count;
      ASSERT_TRUE(store->Summaries(job));
      ++reads;
    }
  };
  std::thread one(reader);
  std::thread two(reader);
  std::thread syncer([&] {
    while (!done) {
      ASSERT_TRUE(store->Sync().ok());
      store->Close(job);
    }
  });
  uint64_t seq = 0;
  for (uint64_t i = 0; i < kBatches; ++i) {
    PointBatch batch;
    for (uint64_t n = 0; n < kPerBatch; ++n, ++seq) {
      batch.items.push_back(Item(seq, "x", static_cast<int64_t>(seq), static_cast<double>(seq)));
    }
    ASSERT_EQ(store->Append(job, batch).value(), kPerBatch);
  }
  done = true;
  one.join();
  two.join();
  syncer.join();
  EXPECT_EQ(store->Read(job, "x").value().size(), kBatches * kPerBatch);
}

}  // namespace
}  // namespace athanor
