// What logs promise after torn writes, kills, flipped bits and full disks. Each
// test names the bug that, planted, turns it red.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/io/files.h"
#include "record/logs/log_testing.h"

namespace athanor {
namespace {

constexpr LogKey kOut{};
constexpr LogKey kErr{1, 0, 0, LogStream::kStderr};

// A log of two streams and its files' bytes, to be damaged.
struct Sample {
  TestDir dir;
  JobId job = JobId::New();
  std::string out;
  std::string err;
  std::string index;

  Sample() {
    OpenedLog log(dir.path());
    for (size_t i = 0; i < 40; ++i) {
      EXPECT_TRUE(log.Append(job, kOut, out.size(), Lines(i, 2)));
      out += Lines(i, 2);
      if (i % 3 != 0) continue;
      EXPECT_TRUE(log.Append(job, kErr, err.size(), Lines(i + 500, 1)));
      err += Lines(i + 500, 1);
    }
    index = ReadFile(Path("index")).value();
  }
  std::string Path(const std::string& name) const { return dir / (job.ToString() + "/" + name); }
  void Put(std::string_view out_bytes, std::string_view index_bytes) const {
    PutBytes(Path(kOut.FileName()), out_bytes);
    PutBytes(Path("index"), index_bytes);
  }
  // Every stored byte once, in order; and the sender can go on from there.
  void ExpectExact(std::string_view out_bytes) const {
    OpenedLog log(dir.path());
    ASSERT_EQ(log.Stream(job, kOut), out_bytes);
    ASSERT_EQ(log.Stream(job, kErr), err);
    ASSERT_EQ(log.Length(job, kOut), out_bytes.size());
    ASSERT_TRUE(log.Append(job, kOut, out_bytes.size() / 2,
                           std::string_view(out).substr(out_bytes.size() / 2)));
    ASSERT_EQ(log.Stream(job, kOut), out);
    OpenedLog again(dir.path());
    ASSERT_EQ(again.Stream(job, kOut), out);
    ASSERT_EQ(again.Stream(job, kErr), err);
    ASSERT_TRUE(again.reports.empty()) << again.reports[0];
  }
};

// Planted bug: no Missing() entries (bytes between a stream and its index are lost).
TEST(LogFaults, AnIndexTornAnywhereLosesAndDoublesNothing) {
  const Sample sample;
  for (size_t cut = 0; cut <= 200; ++cut) {
    const std::string torn = sample.index.substr(0, sample.index.size() - cut);
    ASSERT_NO_FATAL_FAILURE(sample.Put(sample.out, torn));
    ASSERT_NO_FATAL_FAILURE(sample.ExpectExact(sample.out)) << cut;
    // As some file systems leave it after a power cut.
    ASSERT_NO_FATAL_FAILURE(sample.Put(sample.out, torn + std::string(cut, '\0')));
    ASSERT_NO_FATAL_FAILURE(sample.ExpectExact(sample.out)) << cut;
  }
}

// Planted bug: entries beyond the file's end are kept (they show what is sent again twice).
TEST(LogFaults, AStreamTornAnywhereIsSentAgainFromItsLengthAndDoublesNothing) {
  const Sample sample;
  for (size_t cut = 0; cut <= 200; ++cut) {
    const std::string torn = sample.out.substr(0, sample.out.size() - cut);
    ASSERT_NO_FATAL_FAILURE(sample.Put(torn, sample.index));
    ASSERT_NO_FATAL_FAILURE(sample.ExpectExact(torn)) << cut;
  }
}

// Planted bug: a damaged entry is passed over without giving its bytes to another.
TEST(LogFaults, AFlippedBitInTheIndexLosesNothingAndIsReported) {
  Dice dice(TestSeed());
  const Sample sample;
  for (size_t byte = 0; byte < sample.index.size(); ++byte) {
    std::string flipped = sample.index;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << dice.Below(8)));
    ASSERT_NO_FATAL_FAILURE(sample.Put(sample.out, flipped));
    OpenedLog log(sample.dir.path());
    ASSERT_EQ(log.Stream(sample.job, kOut), sample.out) << byte;
    ASSERT_EQ(log.Stream(sample.job, kErr), sample.err) << byte;
    ASSERT_EQ(log.reports.size(), 1u) << byte;
  }
}

// Planted bug: Read passes over an entry that no longer decodes.
TEST(LogFaults, AnIndexDamagedWhileTheJobIsOpenIsRepairedByRead) {
  const Sample sample;
  OpenedLog log(sample.dir.path());
  ASSERT_EQ(log.Stream(sample.job, kOut), sample.out);
  const UniqueFd fd(::open(sample.Path("index").c_str(), O_WRONLY));
  ASSERT_EQ(::pwrite(fd.get(), "xyz", 3, 5 * kLogIndexEntryBytes + 9), 3);
  ASSERT_EQ(log.Stream(sample.job, kOut), sample.out);
  EXPECT_EQ(log.reports.size(), 1u);
  ASSERT_TRUE(log.Append(sample.job, kOut, sample.out.size(), "more"));
  EXPECT_EQ(log.Stream(sample.job, kOut), sample.out + "more");
}

// Planted bug: bytes_crc not compared.
TEST(LogFaults, AFlippedBitInTheTextIsMarkedAndReportedOnce) {
  const Sample sample;
  std::string flipped = sample.out;
  flipped[100] = static_cast<char>(flipped[100] ^ 1);
  ASSERT_NO_FATAL_FAILURE(sample.Put(flipped, sample.index));
  OpenedLog log(sample.dir.path());
  for (int again = 0; again < 2; ++again) {
    LogCursor cursor;
    size_t damaged = 0;
    const auto entries = log.store->Read(sample.job, cursor, SIZE_MAX).value();
    for (const auto& entry : entries) {
      if (!entry.damaged) continue;
      ++damaged;
      EXPECT_NE(sample.out.find(entry.bytes), 0u);
    }
    EXPECT_EQ(damaged, 1u);
    EXPECT_EQ(log.reports.size(), 1u);
  }
}

TEST(LogFaults, WithoutItsIndexALogIsStillWhole) {
  const Sample sample;
  ASSERT_EQ(::unlink(sample.Path("index").c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(sample.ExpectExact(sample.out));
}

// Planted bug: at open a stream's length is taken for less than its file's.
TEST(LogFaults, AcknowledgedBytesSurviveKillNineAndNoneIsDoubled) {
  Dice dice(TestSeed());
  for (int round = 0; round < 20; ++round) {
    const TestDir dir;
    const JobId job = JobId::New();
    const std::string text = Lines(0, 200'000);
    const size_t piece = 1 + dice.Below(3000);
    const auto acked = KillAfter(1 + dice.Below(200), [&](const auto& ack) {
      auto store = LogStore::Open(dir.path()).value();
      for (size_t at = 0; at < text.size(); at += piece) {
        const auto bytes = std::string_view(text).substr(at, piece);
        if (!store->Append(job, {1, 0, 0, LogStream::kStderr, at, 5, bytes})) return;
        const auto appended = store->Append(job, {1, 0, 0, LogStream::kStdout, at, 5, bytes});
        if (!appended) return;
        ack(appended->length);
      }
    });
    ASSERT_FALSE(acked.empty());
    OpenedLog log(dir.path());
    auto streams = log.Streams(job);
    ASSERT_GE(streams[kOut].size(), acked.back());
    for (const auto& key : {kOut, kErr}) {
      ASSERT_EQ(streams[key], text.substr(0, streams[key].size()));
      ASSERT_EQ(log.Length(job, key), streams[key].size());
      // The sender goes by what was acknowledged.
      ASSERT_TRUE(log.Append(job, key, acked.back(), std::string_view(text).substr(acked.back())));
      ASSERT_EQ(log.Stream(job, key), text);
    }
  }
}

// Planted bug: no CutTo when the index cannot be written.
TEST(LogFaults, AFullDiskIsToldAndWhenThereIsSpaceAppendsGoOn) {
  SmallDisk disk("256k");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const JobId job = JobId::New();
  OpenedLog log(disk.path());
  const std::string text = Lines(0, 100'000);
  size_t stored = 0;
  ASSERT_TRUE(log.Append(job, kOut, 0, text.substr(0, 1)));
  ++stored;
  // Small pieces fill the index first, large ones the stream.
  for (const size_t piece : {3u, 9000u, 1u, 4097u, 50u}) {
    ASSERT_NO_FATAL_FAILURE(disk.Fill(2));
    size_t refused = 0;
    while (refused < 3) {
      const auto appended =
          log.Append(job, kOut, stored, std::string_view(text).substr(stored, piece));
      if (appended) {
        stored += piece;
        ASSERT_EQ(appended->length, stored);
        continue;
      }
      ASSERT_EQ(appended.error().code, ErrorCode::kExhausted) << appended.error().what;
      ASSERT_FALSE(appended.error().hint.empty());
      ++refused;
    }
    ASSERT_EQ(log.Length(job, kOut), stored);
    ASSERT_EQ(ReadFile(disk.path() + "/" + job.ToString() + "/" + kOut.FileName()).value(),
              text.substr(0, stored));
    ASSERT_EQ(log.Stream(job), text.substr(0, stored));
    disk.Free();
    ASSERT_EQ(log.Append(job, kOut, stored, std::string_view(text).substr(stored, piece))->added,
              piece);
    stored += piece;
    ASSERT_EQ(log.Stream(job), text.substr(0, stored));
  }
  OpenedLog again(disk.path());
  EXPECT_EQ(again.Stream(job), text.substr(0, stored));
  EXPECT_TRUE(again.reports.empty() && log.reports.empty());
}

}  // namespace
}  // namespace athanor
