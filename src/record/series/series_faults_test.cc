// What series promise after torn writes, kills, flipped bits and full disks. Each
// test names the bug that, planted, turns it red.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <thread>

#include "base/io/files.h"
#include "record/fault_testing.h"
#include "record/series/series_store.h"

namespace athanor {
namespace {

PointBatch BatchOf(uint64_t first, uint64_t count) {
  PointBatch batch;
  for (uint64_t seq = first; seq < first + count; ++seq) {
    const auto step = static_cast<int64_t>(seq);
    batch.items.push_back(
        {seq, {"m" + std::to_string(seq % 3), step, step * 1000, static_cast<double>(seq) / 8}});
  }
  return batch;
}

struct Opened {
  std::vector<std::string> reports;
  std::unique_ptr<SeriesStore> store;

  explicit Opened(const std::string& dir) {
    store = SeriesStore::Open(dir, [this](JobId, const Error& error) {
              EXPECT_EQ(error.code, ErrorCode::kCorrupt);
              reports.push_back(error.what);
            }).value();
  }
  // All points there are; fails unless each is one that BatchOf makes.
  std::map<uint64_t, double> Points(JobId job) {
    std::map<uint64_t, double> found;
    for (int name = 0; name < 3; ++name) {
      const auto points = store->Read(job, "m" + std::to_string(name));
      if (!points) {
        EXPECT_EQ(points.error().code, ErrorCode::kNotFound);
        continue;
      }
      for (const auto& point : *points) {
        const auto seq = static_cast<uint64_t>(point.step.value());
        EXPECT_EQ(seq % 3, static_cast<uint64_t>(name));
        EXPECT_EQ(point.value, static_cast<double>(seq) / 8);
        EXPECT_EQ(point.wall_ns, static_cast<int64_t>(seq) * 1000);
        EXPECT_TRUE(found.emplace(seq, point.value).second);
      }
    }
    return found;
  }
};

std::string PathOf(const std::string& dir, JobId job) {
  const std::string id = job.ToString();
  return dir + "/" + id.substr(id.size() - 2) + "/" + id + ".series";
}

// Planted bug: Load takes the file's size for its length (the next append then goes
// behind the torn record).
TEST(SeriesFaults, ATailTornAnywhereIsCutAndWhatIsSentAgainIsStoredOnce) {
  const TestDir dir;
  const JobId job = JobId::New();
  std::vector<uint64_t> sizes = {0};
  const std::string path = PathOf(dir.path(), job);
  {
    Opened opened(dir.path());
    for (uint64_t i = 0; i < 40; ++i) {
      ASSERT_TRUE(opened.store->Append(job, BatchOf(i * 4, 4)));
      sizes.push_back(ReadFile(path).value().size());
    }
  }
  const std::string whole = ReadFile(path).value();
  ASSERT_GT(whole.size(), 200u);
  for (size_t cut = 0; cut <= 200; ++cut) {
    for (const std::string& tail :
         {std::string(), std::string(cut, '\0'), std::string(37, '\x01')}) {
      const size_t left = whole.size() - cut;
      PutBytes(path, whole.substr(0, left) + tail);
      Opened opened(dir.path());
      // Frames end where batches end, since no new names come up here.
      const auto batches = static_cast<uint64_t>(
          std::upper_bound(sizes.begin(), sizes.end(), left) - sizes.begin() - 1);
      ASSERT_EQ(opened.Points(job).size(), batches * 4) << cut;
      const bool torn = sizes[batches] != left || !tail.empty();
      ASSERT_EQ(opened.reports.size(), torn ? 1u : 0u) << cut;
      ASSERT_EQ(opened.store->Append(job, BatchOf(0, 164)).value(), 164 - batches * 4);
      ASSERT_EQ(opened.Points(job).size(), 164u);
      Opened again(dir.path());
      ASSERT_EQ(again.Points(job).size(), 164u);
      ASSERT_TRUE(again.reports.empty()) << again.reports[0];
    }
  }
}

// Planted bug: a batch is acknowledged before write(2) (say, when every fifth one waits
// to be written with the next).
TEST(SeriesFaults, AcknowledgedPointsSurviveKillNineAndNoneIsDoubled) {
  Dice dice(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const TestDir dir;
    const JobId job = JobId::New();
    const auto acked = KillAfter(1 + dice.Below(120), [&](const auto& ack) {
      auto store = SeriesStore::Open(dir.path()).value();
      for (uint64_t seq = 0; seq < 100'000; seq += 7) {
        if (!store->Append(job, BatchOf(seq, 7))) return;
        ack(seq + 7);
      }
    });
    ASSERT_FALSE(acked.empty());
    Opened opened(dir.path());
    const auto points = opened.Points(job);
    ASSERT_GE(points.size(), acked.back());
    EXPECT_EQ(points.rbegin()->first, points.size() - 1) << "a hole";
    // A sender knows only what was acknowledged.
    const uint64_t total = points.size() + 50;
    ASSERT_EQ(opened.store->Append(job, BatchOf(acked.back(), total - acked.back())).value(), 50u);
    ASSERT_EQ(opened.Points(job).size(), total);
  }
}

// Planted bug: no crc compared in PayloadAt (wrong values are read), or the file cut
// at the first bad record (good points behind it are lost).
TEST(SeriesFaults, AFlippedBitNeverGivesAWrongPointAndIsReported) {
  Dice dice(TestSeed());
  const TestDir dir;
  const JobId job = JobId::New();
  const std::string path = PathOf(dir.path(), job);
  {
    Opened opened(dir.path());
    for (uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(opened.store->Append(job, BatchOf(i * 4, 4)));
  }
  const std::string whole = ReadFile(path).value();
  size_t least = 120;
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << dice.Below(8)));
    PutBytes(path, flipped);
    Opened opened(dir.path());
    const auto points = opened.Points(job);
    ASSERT_FALSE(opened.reports.empty()) << byte;
    // If the record of a name is damaged, all its points are lost; otherwise at most four points.
    if (byte > 100) least = std::min(least, points.size());
    const uint64_t before = points.size();
    ASSERT_EQ(opened.store->Append(job, BatchOf(120, 3)).value(), 3u);
    ASSERT_EQ(opened.Points(job).size(), before + 3);
  }
  EXPECT_EQ(least, 116u);
}

// Planted bug: Read trusts what was checked when the job was opened.
TEST(SeriesFaults, ABitFlippedWhileTheJobIsOpenIsReportedByRead) {
  const TestDir dir;
  const JobId job = JobId::New();
  Opened opened(dir.path());
  ASSERT_TRUE(opened.store->Append(job, BatchOf(0, 4)));
  ASSERT_TRUE(opened.store->Append(job, BatchOf(4, 4)));
  ASSERT_EQ(opened.Points(job).size(), 8u);
  const std::string path = PathOf(dir.path(), job);
  for (const size_t from_end : {100u, 10u}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-static_cast<long>(from_end), std::ios::end);
    const int byte = file.get();
    file.seekp(-static_cast<long>(from_end), std::ios::end);
    file.put(static_cast<char>(byte ^ 4));
    file.close();
    const auto reports = opened.reports.size();
    const auto points = opened.Points(job);
    EXPECT_LT(points.size(), 8u);
    EXPECT_EQ(opened.reports.size(), reports + 1);
  }
}

// Planted bug: the state takes the points before the write succeeded.
TEST(SeriesFaults, AFullDiskIsToldAndWhenThereIsSpaceAppendsGoOn) {
  SmallDisk disk("256k");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const JobId job = JobId::New();
  Opened opened(disk.path());
  uint64_t stored = 0;
  ASSERT_TRUE(opened.store->Append(job, BatchOf(0, 1)));
  ++stored;
  for (int round = 0; round < 5; ++round) {
    ASSERT_NO_FATAL_FAILURE(disk.Fill(2));
    size_t refused = 0;
    for (int tries = 0; tries < 200 && refused < 3; ++tries) {
      const auto appended = opened.store->Append(job, BatchOf(stored, 40));
      if (appended) {
        ASSERT_EQ(*appended, 40u);
        stored += 40;
        continue;
      }
      ASSERT_EQ(appended.error().code, ErrorCode::kExhausted) << appended.error().what;
      ASSERT_FALSE(appended.error().hint.empty());
      ++refused;
    }
    ASSERT_EQ(refused, 3u);
    ASSERT_EQ(opened.Points(job).size(), stored);
    disk.Free();
    ASSERT_EQ(opened.store->Append(job, BatchOf(stored, 40)).value(), 40u);
    stored += 40;
    ASSERT_EQ(opened.Points(job).size(), stored);
  }
  Opened again(disk.path());
  EXPECT_EQ(again.Points(job).size(), stored);
  EXPECT_TRUE(again.reports.empty() && opened.reports.empty());
}

// Planted bug: the owner in the header is not compared.
TEST(SeriesFaults, AFileOfAnotherJobIsRefused) {
  const TestDir dir;
  const JobId job = JobId::New();
  const JobId other = JobId::New();
  Opened opened(dir.path());
  ASSERT_TRUE(opened.store->Append(job, BatchOf(0, 4)));
  ASSERT_TRUE(MakeDirs(DirName(PathOf(dir.path(), other))));
  PutBytes(PathOf(dir.path(), other), ReadFile(PathOf(dir.path(), job)).value());
  const auto read = opened.store->Read(other, "m0");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_FALSE(opened.store->Append(other, BatchOf(4, 4)));
}

// Planted bug: state kept after AppendAt found the file shorter.
TEST(SeriesFaults, AFileThatWasCutBehindItsBackIsReadAnew) {
  const TestDir dir;
  const JobId job = JobId::New();
  Opened opened(dir.path());
  ASSERT_TRUE(opened.store->Append(job, BatchOf(0, 40)));
  ASSERT_EQ(::truncate(PathOf(dir.path(), job).c_str(), 60), 0);
  const auto failed = opened.store->Append(job, BatchOf(40, 4));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(opened.store->Append(job, BatchOf(0, 44)).value(), 44u);
  EXPECT_EQ(opened.Points(job).size(), 44u);
}

// Planted bug: KeepIndex says that it knows the file up to `state.length` as it is after the write
// of the index, not up to where the index was made.
TEST(SeriesFaults, AnIndexKeptInTheMidstOfAppendsAndAKillIsRightOrNone) {
  Dice dice(TestSeed());
  for (int round = 0; round < 12; ++round) {
    const TestDir dir;
    const JobId job = JobId::New();
    const auto acked = KillAfter(20 + dice.Below(60), [&](const auto& ack) {
      // No room: after each call the outline is put away, or the whole state.
      auto store = SeriesStore::Open(dir.path(), {}, round % 2 == 0 ? 0 : 1 << 20).value();
      std::thread syncing([&] {
        for (;;) (void)store->Sync();
      });
      for (uint64_t seq = 0; seq < 10'000'000; seq += 1500) {
        if (!store->Append(job, BatchOf(seq, 1500))) ::_exit(1);
        ack(seq + 1500);
      }
      ::_exit(1);
    });
    ASSERT_FALSE(acked.empty());
    const std::string path = PathOf(dir.path(), job);
    Opened opened(dir.path());
    const auto summaries = opened.store->Summaries(job).value();
    const auto points = opened.Points(job);
    ASSERT_GE(points.size(), acked.back());
    EXPECT_EQ(points.rbegin()->first, points.size() - 1) << "a hole";
    ASSERT_TRUE(RemoveTree(path.substr(0, path.size() - 7) + ".index"));
    Opened scanned(dir.path());
    const auto anew = scanned.store->Summaries(job).value();
    ASSERT_EQ(summaries.size(), anew.size());
    for (size_t i = 0; i < anew.size(); ++i) {
      EXPECT_EQ(summaries[i].name, anew[i].name);
      EXPECT_EQ(summaries[i].count, anew[i].count);
      EXPECT_EQ(summaries[i].last, anew[i].last);
      SampleQuery query;
      query.width = 3000;
      const auto sample = opened.store->Sample(job, anew[i].name, query).value();
      EXPECT_EQ(sample.size(), scanned.store->Sample(job, anew[i].name, query)->size());
    }
  }
}

}  // namespace
}  // namespace athanor
