// Planted bugs that turn these red: not looking at the last seq in KeepFresh stores points twice;
// taking the sender's numbers for the store's ids mixes names; going on behind a bad frame loses
// points.
#include "record/series/series_frames.h"

#include <gtest/gtest.h>

#include "record/fault_testing.h"
#include "record/series/series_store.h"

namespace athanor {
namespace {

constexpr uint32_t kChannel = 7;

std::string NameOf(uint64_t seq) { return "train/metric " + std::to_string(seq % 11); }

// The points [from, to) of a run, as frames.
std::string Frames(uint64_t from, uint64_t to) {
  FrameMaker made(kChannel);
  for (uint64_t seq = from; seq < to; ++seq) {
    made.Add(seq, NameOf(seq), static_cast<int64_t>(seq), static_cast<int64_t>(seq * 1'000),
             static_cast<double>(seq) / 3);
  }
  EXPECT_EQ(made.points(), to - from);
  return made.Take();
}

void ExpectAll(const SeriesStore& store, JobId job, uint64_t count) {
  uint64_t found = 0;
  for (uint64_t name = 0; name < 11; ++name) {
    const auto points = store.Read(job, NameOf(name)).value();
    for (const auto& point : points) {
      const auto seq = static_cast<uint64_t>(*point.step);
      EXPECT_EQ(NameOf(seq), NameOf(name));
      EXPECT_EQ(point.wall_ns, static_cast<int64_t>(seq * 1'000));
      EXPECT_EQ(point.value, static_cast<double>(seq) / 3);
    }
    found += points.size();
  }
  EXPECT_EQ(found, count);
}

TEST(SeriesFrames, KeepEveryPointUnderItsNameAlsoAfterARestart) {
  const TestDir dir;
  const JobId job = JobId::New();
  {
    auto store = SeriesStore::Open(dir.path()).value();
    // The store's own ids are others than the sender's.
    ASSERT_TRUE(store->Append(job, {1, 0, 1, {{1, {"another", 1, 1, 1}}}}));
    ASSERT_TRUE(store->Append(job, {1, 0, 1, {{2, {NameOf(5), 5, 5'000, 5.0 / 3}}}}));
    ASSERT_EQ(store->AppendFrames(job, Frames(6, 3'000)).value(), 2'994u);
    ExpectAll(*store, job, 2'995);
  }
  ExpectAll(*SeriesStore::Open(dir.path()).value(), job, 2'995);
}

TEST(SeriesFrames, AreStoredOnceHoweverTheyAreCutAndSentAgain) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = SeriesStore::Open(dir.path()).value();
  ASSERT_EQ(store->AppendFrames(job, Frames(0, 1'500)).value(), 1'500u);
  EXPECT_EQ(store->AppendFrames(job, Frames(0, 1'500)).value(), 0u);
  EXPECT_EQ(store->AppendFrames(job, Frames(700, 2'000)).value(), 500u);
  store = SeriesStore::Open(dir.path()).value();
  EXPECT_EQ(store->AppendFrames(job, Frames(0, 2'001)).value(), 1u);
  // Points that were sent as frames are not stored again when they come as a batch.
  PointBatch batch;
  batch.channel = kChannel;
  for (uint64_t seq = 1'990; seq < 2'010; ++seq) {
    batch.items.push_back({seq,
                           {NameOf(seq), static_cast<int64_t>(seq),
                            static_cast<int64_t>(seq * 1'000), static_cast<double>(seq) / 3}});
  }
  EXPECT_EQ(store->Append(job, batch).value(), 9u);
  ExpectAll(*store, job, 2'010);
}

TEST(SeriesFrames, AreRefusedWholeWhenAnyBitIsWrong) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = SeriesStore::Open(dir.path()).value();
  const std::string good = Frames(0, 600);
  Dice dice(TestSeed());
  for (int i = 0; i < 500; ++i) {
    std::string bad = good;
    bad[dice.Below(bad.size())] ^= static_cast<char>(1 << dice.Below(8));
    const auto refused = store->AppendFrames(job, bad);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    const auto torn = store->AppendFrames(job, good.substr(0, good.size() - 1 - dice.Below(100)));
    ASSERT_FALSE(torn);
    ASSERT_TRUE(store->Summaries(job).value().empty());
  }
  EXPECT_EQ(store->AppendFrames(job, good).value(), 600u);
  EXPECT_EQ(store->AppendFrames(job, "").value(), 0u);
}

TEST(SeriesFrames, WithoutNamesOrWithAHeaderAreRefused) {
  const TestDir dir;
  const JobId job = JobId::New();
  auto store = SeriesStore::Open(dir.path()).value();
  std::string nameless;
  AddBlockFrame(nameless, {1, 0, kChannel, {{1, 0, 1, 1, 1.0}}, 0, 0});
  EXPECT_FALSE(store->AppendFrames(job, nameless));
  std::string high;
  AddNameFrame(high, kMaxSentNames, "x");
  EXPECT_FALSE(store->AppendFrames(job, high));
  std::string header;
  AddHeaderFrame(header, job);
  EXPECT_FALSE(store->AppendFrames(job, header + Frames(0, 10)));
  EXPECT_TRUE(store->Summaries(job).value().empty());
}

}  // namespace
}  // namespace athanor
