#include "link/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "link/spool_writer.h"

namespace athanor {
namespace {

using spool::SegmentName;
using spool::SpoolWriter;

struct Seen {
  uint32_t serial;
  uint64_t seq;
  std::string name;
  std::optional<int64_t> step;
  double value;
  bool operator==(const Seen&) const = default;
};

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "spool-XXXXXX").string();
    dir_ = ::mkdtemp(pattern.data());
  }
  ~SpoolTest() override { std::filesystem::remove_all(dir_); }

  SpoolSegments OpenSegments(SpoolSegments::Options options = {}) {
    auto segments = SpoolSegments::Open(dir_, options);
    EXPECT_TRUE(segments.has_value()) << segments.error().what;
    return std::move(*segments);
  }

  std::string PathOf(uint32_t serial) const { return dir_ + "/" + SegmentName(serial); }

  static std::vector<Seen> PollAll(SpoolSegments& segments, size_t max_points = SIZE_MAX) {
    std::vector<Seen> seen;
    const Status status = segments.Poll(
        [&](const SpoolBatch& batch) {
          for (const SpoolPoint& point : batch.points) {
            seen.push_back(
                {batch.serial, point.seq, std::string(point.name), point.step, point.value});
          }
        },
        max_points);
    EXPECT_TRUE(status.ok()) << status.error().what;
    return seen;
  }

  static uint32_t Log(SpoolWriter& writer, std::string_view name, int64_t step, double value) {
    now_ns_ += 2'000'000;  // past the writer's retry interval
    return writer.AppendNamed(name, spool::kHasStep, step, now_ns_, value);
  }

  void Overwrite(uint32_t serial, size_t offset, std::string_view bytes) {
    const int fd = ::open(PathOf(serial).c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
    ::close(fd);
  }
  template <class T>
  void OverwriteValue(uint32_t serial, size_t offset, T value) {
    Overwrite(serial, offset, {reinterpret_cast<const char*>(&value), sizeof value});
  }

  inline static int64_t now_ns_ = 1'700'000'000'000'000'000;
  std::string dir_;
};

TEST_F(SpoolTest, HandsOverEachPointOnceWithItsSequence) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  const uint32_t loss = Log(writer, "loss", 1, 0.5);
  ASSERT_NE(loss, 0u);
  ASSERT_TRUE(writer.Append(loss, 0, 0, 7, 0.25));
  EXPECT_EQ(PollAll(segments),
            (std::vector<Seen>{{1, 1, "loss", 1, 0.5}, {1, 2, "loss", std::nullopt, 0.25}}));
  EXPECT_TRUE(PollAll(segments).empty());
  ASSERT_TRUE(writer.Append(loss, spool::kHasStep, -3, 7, 2));
  EXPECT_EQ(PollAll(segments), (std::vector<Seen>{{1, 3, "loss", -3, 2.0}}));
  EXPECT_EQ(segments.counts().points, 3u);
}

// Planted bug: a look ahead that moves what Poll reads, or that Poll's batches do not tell of.
TEST_F(SpoolTest, ALookAheadShowsEachPointOnceAndLeavesItForPoll) {
  auto segments = OpenSegments({.segment_bytes = 8192});
  SpoolWriter writer(dir_);
  std::vector<double> shown;
  const auto show = [&](const SpoolBatch& batch) {
    EXPECT_FALSE(batch.seen);
    for (const auto& point : batch.points) shown.push_back(point.value);
  };
  std::vector<double> taken;
  size_t fresh = 0;
  const auto take = [&](const SpoolBatch& batch) {
    for (const auto& point : batch.points) taken.push_back(point.value);
    if (!batch.seen) show(batch);
    fresh += batch.seen ? 0 : batch.points.size();
  };
  std::vector<double> all;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 20; ++i) {
      ASSERT_NE(Log(writer, "loss", round, static_cast<double>(all.size())), 0u);
      all.push_back(static_cast<double>(all.size()));
    }
    // Now and then there is room to take some.
    ASSERT_TRUE(segments.Poll(take, round % 7 == 0 ? 15 : 0).ok());
    if (round % 5 != 0) segments.LookAhead(show);
  }
  segments.LookAhead(show);
  EXPECT_EQ(shown, all);
  ASSERT_TRUE(segments.Poll(take).ok());
  EXPECT_EQ(taken, all);
  EXPECT_LT(fresh, all.size());
  EXPECT_EQ(segments.counts().points, all.size());
  EXPECT_EQ(segments.counts().corrupt_segments, 0u);
}

TEST_F(SpoolTest, KeepsNanAndInfinityAndAllBitsOfANumber) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {std::nan("0x123"), infinity, -infinity, -0.0, 5e-324};
  for (double value : values) Log(writer, "v", 0, value);
  const auto seen = PollAll(segments);
  ASSERT_EQ(seen.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::memcmp(&seen[i].value, &values[i], sizeof(double)), 0) << i;
  }
}

TEST_F(SpoolTest, PassesMarksAndProgressOn) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  ASSERT_TRUE(writer.AppendMark(spool::kMarkDone, 11));
  ASSERT_TRUE(writer.AppendProgress(3, 10, 12));
  int batches = 0;
  ASSERT_TRUE(segments
                  .Poll([&](const SpoolBatch& batch) {
                    ++batches;
                    ASSERT_EQ(batch.marks.size(), 1u);
                    EXPECT_EQ(batch.marks[0].code, spool::kMarkDone);
                    EXPECT_EQ(batch.marks[0].wall_ns, 11);
                    ASSERT_EQ(batch.progress.size(), 1u);
                    EXPECT_EQ(batch.progress[0].done, 3);
                    EXPECT_EQ(batch.progress[0].total, 10);
                  })
                  .ok());
  EXPECT_EQ(batches, 1);
}

TEST_F(SpoolTest, PassesACheckpointOnOnceEvenWithNothingBesideIt) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  ASSERT_TRUE(writer.AppendCheckpoint(-7, 3'100'000'000, 13));
  std::vector<SpoolCheckpoint> seen;
  const auto note = [&](const SpoolBatch& batch) {
    seen.insert(seen.end(), batch.checkpoints.begin(), batch.checkpoints.end());
  };
  ASSERT_TRUE(segments.Poll(note).ok());
  ASSERT_TRUE(segments.Poll(note).ok());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].step, -7);
  EXPECT_EQ(seen[0].save_ns, 3'100'000'000);
  EXPECT_EQ(seen[0].wall_ns, 13);
  EXPECT_EQ(segments.counts().unknown_records, 0u);
}

TEST_F(SpoolTest, ACheckpointOfTheWrongLengthIsCorrupt) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  ASSERT_TRUE(writer.AppendMark(1, 1));
  OverwriteValue(1, 64 + 4, uint32_t{spool::kCheckpoint});
  PollAll(segments);
  PollAll(segments);  // the verdict on a live writer takes two looks
  EXPECT_EQ(segments.counts().corrupt_segments, 1u);
}

TEST_F(SpoolTest, SegmentsAreAllocatedInFullBeforeAnyoneCanMapThem) {
  auto segments = OpenSegments();
  EXPECT_EQ(segments.segments(), 4u);
  for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
    struct stat about = {};
    ASSERT_EQ(::stat(entry.path().c_str(), &about), 0);
    EXPECT_EQ(static_cast<size_t>(about.st_size), spool::kDefaultSegmentBytes);
    EXPECT_GE(static_cast<size_t>(about.st_blocks) * 512, spool::kDefaultSegmentBytes);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
  }
}

TEST_F(SpoolTest, MovesToTheNextSegmentAndRedefinesNamesThere) {
  auto segments = OpenSegments({.spare = 3, .segment_bytes = 4096});
  SpoolWriter writer(dir_);
  const size_t wanted = 250;
  uint32_t id = 0;
  uint64_t generation = 0;
  for (size_t i = 0; i < wanted; ++i) {
    if (writer.generation() != generation || !writer.Append(id, 1, static_cast<int64_t>(i), 1, 1)) {
      id = Log(writer, "loss", static_cast<int64_t>(i), 1);
      ASSERT_NE(id, 0u);
      generation = writer.generation();
    }
  }
  const auto seen = PollAll(segments);
  ASSERT_EQ(seen.size(), wanted);
  std::map<uint32_t, uint64_t> last;
  for (size_t i = 0; i < wanted; ++i) {
    EXPECT_EQ(seen[i].step, static_cast<int64_t>(i));
    EXPECT_EQ(seen[i].seq, ++last[seen[i].serial]);
  }
  EXPECT_EQ(last.size(), 3u);
}

TEST_F(SpoolTest, DropsAndCountsWhenNoSegmentIsFreeAndReportsItInTheNext) {
  auto segments = OpenSegments({.spare = 1, .segment_bytes = 4096});
  SpoolWriter writer(dir_);
  size_t kept = 0;
  while (Log(writer, "loss", 1, 1) != 0) ++kept;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Log(writer, "loss", 1, 1), 0u);
  EXPECT_EQ(writer.dropped(), 5u);
  EXPECT_EQ(PollAll(segments).size(), kept);  // and makes room
  EXPECT_EQ(segments.counts().dropped, 0u);
  EXPECT_NE(Log(writer, "loss", 1, 1), 0u);
  EXPECT_EQ(PollAll(segments).size(), 1u);
  EXPECT_EQ(segments.counts().dropped, 5u);
}

TEST_F(SpoolTest, TriesForASegmentAtMostOnceAMillisecond) {
  SpoolWriter writer(dir_);  // an empty folder
  const int64_t now = now_ns_ += 10'000'000;
  EXPECT_EQ(writer.AppendNamed("a", 0, 0, now, 1), 0u);
  auto segments = OpenSegments();
  EXPECT_EQ(writer.AppendNamed("a", 0, 0, now + 999'999, 1), 0u);
  EXPECT_NE(writer.AppendNamed("a", 0, 0, now + 1'000'000, 1), 0u);
}

TEST_F(SpoolTest, TriesAgainAfterTheClockWasSetBack) {
  SpoolWriter writer(dir_);
  EXPECT_EQ(writer.AppendNamed("a", 0, 0, now_ns_, 1), 0u);
  auto segments = OpenSegments();
  EXPECT_NE(writer.AppendNamed("a", 0, 0, now_ns_ - 3'600'000'000'000, 1), 0u);
}

TEST_F(SpoolTest, RemovesASegmentOnlyWhenClosedReadAndAcknowledged) {
  auto segments = OpenSegments();
  {
    SpoolWriter writer(dir_);
    Log(writer, "loss", 1, 1);
    Log(writer, "loss", 2, 1);
    PollAll(segments);
    segments.Acknowledge(1, 2);
    EXPECT_TRUE(std::filesystem::exists(PathOf(1)));  // still being written
  }
  PollAll(segments);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
}

TEST_F(SpoolTest, KeepsAClosedSegmentUntilItsLastPointIsAcknowledged) {
  auto segments = OpenSegments();
  {
    SpoolWriter writer(dir_);
    Log(writer, "loss", 1, 1);
    Log(writer, "loss", 2, 1);
  }
  PollAll(segments);
  segments.Acknowledge(1, 1);
  EXPECT_TRUE(std::filesystem::exists(PathOf(1)));
  segments.Acknowledge(1, 2);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
}

TEST_F(SpoolTest, ARestartedAgentReadsFromTheStartAndNeverReusesASerial) {
  auto first = OpenSegments({.spare = 1, .segment_bytes = 4096, .budget_bytes = 8192});
  SpoolWriter writer(dir_);
  Log(writer, "loss", 1, 1);
  EXPECT_EQ(PollAll(first).size(), 1u);
  auto second = OpenSegments({.spare = 1, .segment_bytes = 4096, .budget_bytes = 8192});
  EXPECT_EQ(PollAll(second), (std::vector<Seen>{{1, 1, "loss", 1, 1.0}}));
  writer.Close();
  PollAll(second);
  second.Acknowledge(1, 1);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  Log(writer, "loss", 2, 1);  // in segment 2, which then is the highest
  writer.Close();
  auto third = OpenSegments({.spare = 0});
  PollAll(third);
  auto fourth = OpenSegments({.spare = 1, .segment_bytes = 4096, .budget_bytes = 8192});
  PollAll(fourth);
  fourth.Acknowledge(2, 1);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  EXPECT_TRUE(std::filesystem::exists(PathOf(3)));
}

TEST_F(SpoolTest, TheHighestSerialStaysOnDiskUntilAHigherOneExists) {
  auto segments = OpenSegments({.spare = 1, .segment_bytes = 4096, .budget_bytes = 4096});
  {
    SpoolWriter writer(dir_);
    Log(writer, "loss", 1, 1);
  }
  PollAll(segments);
  segments.Acknowledge(1, 1);
  EXPECT_TRUE(std::filesystem::exists(PathOf(1)));
}

TEST_F(SpoolTest, FindsTheSegmentOfAKilledWriterDone) {
  auto segments = OpenSegments();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    SpoolWriter writer(dir_);
    Log(writer, "loss", 1, 1);
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(PollAll(segments).size(), 1u);
  EXPECT_FALSE(segments.Drained());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(PollAll(segments).empty());
  EXPECT_TRUE(segments.Drained());
  segments.Acknowledge(1, 1);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(SpoolTest, AForkedChildWritesInItsOwnSegmentAndFreesTheParentsLock) {
  auto segments = OpenSegments();
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  auto writer = std::make_unique<SpoolWriter>(dir_);
  Log(*writer, "parent", 1, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    writer->ForgetAfterFork();
    Log(*writer, "child", 1, 2);
    char byte;
    ::close(go[1]);
    (void)!::read(go[0], &byte, 1);  // lives until the parent lets go
    ::_exit(0);
  }
  Log(*writer, "parent", 2, 1);
  writer.reset();
  std::vector<Seen> seen;
  while (seen.size() < 3) {
    for (Seen& point : PollAll(segments)) seen.push_back(std::move(point));
  }
  std::map<uint32_t, std::string> names;
  for (const Seen& point : seen) {
    EXPECT_EQ(names.emplace(point.serial, point.name).first->second, point.name);
  }
  EXPECT_EQ(names.size(), 2u);
  segments.Acknowledge(1, 2);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  ::close(go[0]);
  ::close(go[1]);
  ::waitpid(child, nullptr, 0);
}

TEST_F(SpoolTest, TwoWritersNeverShareASegment) {
  auto segments = OpenSegments();
  SpoolWriter one(dir_);
  SpoolWriter two(dir_);
  Log(one, "one", 1, 1);
  Log(two, "two", 1, 1);
  Log(one, "one", 2, 1);
  const auto seen = PollAll(segments);
  EXPECT_EQ(seen, (std::vector<Seen>{
                      {1, 1, "one", 1, 1.0}, {1, 2, "one", 2, 1.0}, {2, 1, "two", 1, 1.0}}));
}

TEST_F(SpoolTest, StaysWithinTheByteBudget) {
  auto segments = OpenSegments({.spare = 4, .segment_bytes = 4096, .budget_bytes = 3 * 4096});
  EXPECT_EQ(segments.segments(), 3u);
  PollAll(segments);
  EXPECT_EQ(segments.segments(), 3u);
}

TEST_F(SpoolTest, StopsAfterAboutMaxPointsAndGoesOnFromThere) {
  auto segments = OpenSegments({.spare = 4, .segment_bytes = 4096});
  SpoolWriter writer(dir_);
  for (int i = 0; i < 150; ++i) ASSERT_NE(Log(writer, "loss", i, 1), 0u);
  const auto some = PollAll(segments, 1);
  EXPECT_LT(some.size(), 150u);
  auto all = some;
  for (Seen& point : PollAll(segments)) all.push_back(std::move(point));
  ASSERT_EQ(all.size(), 150u);
  for (int i = 0; i < 150; ++i) EXPECT_EQ(all[static_cast<size_t>(i)].step, i);
}

TEST_F(SpoolTest, ReadsWhileAnotherThreadWrites) {
  auto segments = OpenSegments({.spare = 64, .segment_bytes = 65536});
  constexpr int kPoints = 60'000;
  std::thread thread([&] {
    SpoolWriter writer(dir_);
    uint32_t id = 0;
    for (int i = 0; i < kPoints; ++i) {
      if (id == 0 || !writer.Append(id, 1, i, 1, i)) {
        do {
          id = Log(writer, "loss", i, i);
        } while (id == 0);
      }
    }
  });
  std::vector<Seen> seen;
  while (seen.size() < kPoints && segments.counts().corrupt_segments == 0) {
    for (Seen& point : PollAll(segments)) {
      segments.Acknowledge(point.serial, point.seq);
      seen.push_back(std::move(point));
    }
  }
  thread.join();
  EXPECT_EQ(segments.counts().corrupt_segments, 0u);
  ASSERT_EQ(seen.size(), size_t{kPoints});
  for (int i = 0; i < kPoints; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)].value, i);
}

// Each case damages a segment that holds two good points; the first is read before.
struct Damage {
  const char* what;
  std::function<void(const std::string& path, int fd)> apply;
};

class SpoolDamageTest : public SpoolTest, public testing::WithParamInterface<Damage> {};

template <class T>
void Put(int fd, size_t offset, T value) {
  ASSERT_EQ(::pwrite(fd, &value, sizeof value, static_cast<off_t>(offset)),
            static_cast<ssize_t>(sizeof value));
}

TEST_P(SpoolDamageTest, IsCountedSkippedAndHarmless) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  Log(writer, "loss", 1, 1);
  EXPECT_EQ(PollAll(segments).size(), 1u);
  Log(writer, "loss", 2, 1);
  const int fd = ::open(PathOf(1).c_str(), O_RDWR);
  GetParam().apply(PathOf(1), fd);
  ::close(fd);
  PollAll(segments);
  PollAll(segments);  // the verdict on a live writer takes two looks
  EXPECT_EQ(segments.counts().corrupt_segments, 1u);
  SpoolWriter other(dir_);
  Log(other, "acc", 1, 1);
  EXPECT_EQ(PollAll(segments), (std::vector<Seen>{{2, 1, "acc", 1, 1.0}}));
  EXPECT_EQ(segments.counts().corrupt_segments, 1u);
  segments.Acknowledge(1, UINT64_MAX);
  EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  writer.ForgetAfterFork();  // Close() would write to a page that may be gone
}

// The first definition and point take 24 + 40 bytes behind the 64 of the header.
constexpr size_t kSecond = 64 + 64;
INSTANTIATE_TEST_SUITE_P(
    Of, SpoolDamageTest,
    testing::Values(
        Damage{"magic", [](auto&, int fd) { Put(fd, 0, 'X'); }},
        Damage{"serial", [](auto&, int fd) { Put(fd, 8, uint32_t{9}); }},
        Damage{"capacity", [](auto&, int fd) { Put(fd, 12, UINT32_MAX); }},
        Damage{"committed_past_the_end", [](auto&, int fd) { Put(fd, 16, UINT64_MAX); }},
        Damage{"committed_going_back", [](auto&, int fd) { Put(fd, 16, uint64_t{8}); }},
        Damage{"committed_in_a_record", [](auto&, int fd) { Put(fd, 16, uint64_t{64 + 16}); }},
        Damage{"committed_over_zeros", [](auto&, int fd) { Put(fd, 16, uint64_t{4096}); }},
        Damage{"state", [](auto&, int fd) { Put(fd, 24, uint32_t{77}); }},
        Damage{"length_0", [](auto&, int fd) { Put(fd, kSecond, uint32_t{0}); }},
        Damage{"length_odd", [](auto&, int fd) { Put(fd, kSecond, uint32_t{25}); }},
        Damage{"length_huge", [](auto&, int fd) { Put(fd, kSecond, uint32_t{0xfffffff8}); }},
        Damage{"length_of_another_kind", [](auto&, int fd) { Put(fd, kSecond, uint32_t{32}); }},
        Damage{"name_length", [](auto&, int fd) { Put(fd, kSecond + 12, uint32_t{1025}); }},
        Damage{"name_empty", [](auto&, int fd) { Put(fd, kSecond + 12, uint32_t{0}); }},
        Damage{"name_not_utf8", [](auto&, int fd) { Put(fd, kSecond + 16, '\xff'); }},
        Damage{
            "name_redefined",
            [](auto&, int fd) { Put(fd, kSecond + 8, uint32_t{1}), Put(fd, kSecond + 16, 'm'); }},
        Damage{"unknown_name", [](auto&, int fd) { Put(fd, kSecond + 24 + 8, uint32_t{9}); }},
        Damage{"truncated", [](auto&, int fd) { ASSERT_EQ(::ftruncate(fd, 100), 0); }},
        Damage{"emptied", [](auto&, int fd) { ASSERT_EQ(::ftruncate(fd, 0), 0); }},
        Damage{"a_link",
               [](auto& path, int) {
                 std::filesystem::remove(path);
                 std::filesystem::create_symlink("/etc/passwd", path);
               }},
        Damage{"a_fifo",
               [](auto& path, int) {
                 std::filesystem::remove(path);
                 ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
               }}),
    [](const auto& damage) { return std::string(damage.param.what); });

TEST_F(SpoolTest, ARemovedSegmentIsCountedAsLost) {
  auto segments = OpenSegments();
  std::filesystem::remove(PathOf(1));
  PollAll(segments);
  EXPECT_EQ(segments.counts().lost_segments, 1u);
  EXPECT_TRUE(std::filesystem::exists(PathOf(5)));
}

TEST_F(SpoolTest, SkipsWellFormedRecordsOfLaterKinds) {
  auto segments = OpenSegments();
  SpoolWriter writer(dir_);
  writer.AppendMark(1, 1);
  Log(writer, "loss", 1, 1);
  OverwriteValue(1, 64 + 4, uint32_t{999});
  EXPECT_EQ(PollAll(segments).size(), 1u);
  EXPECT_EQ(segments.counts().unknown_records, 1u);
  EXPECT_EQ(segments.counts().corrupt_segments, 0u);
}

TEST_F(SpoolTest, TheWriterLeavesFilesAloneThatAreNoSegments) {
  ASSERT_EQ(::mkfifo(PathOf(1).c_str(), 0600), 0);
  std::filesystem::create_directory(PathOf(2));
  std::filesystem::create_symlink("/dev/null", PathOf(3));
  ASSERT_EQ(::close(::open(PathOf(4).c_str(), O_CREAT | O_WRONLY, 0600)), 0);
  SpoolWriter writer(dir_);
  EXPECT_EQ(Log(writer, "loss", 1, 1), 0u);
  EXPECT_EQ(writer.dropped(), 1u);
}

TEST_F(SpoolTest, AFullDiskLeavesReadingAloneAndMakesNoHalfSegment) {
  auto segments = OpenSegments({.spare = 1});
  SpoolWriter writer(dir_);
  Log(writer, "loss", 1, 1);
  rlimit old = {};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{4096, old.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  size_t points = 0;
  const Status status =
      segments.Poll([&](const SpoolBatch& batch) { points += batch.points.size(); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(points, 1u);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_)) ++files;
  EXPECT_EQ(files, 1u);
  PollAll(segments);
  EXPECT_TRUE(std::filesystem::exists(PathOf(2)));
}

TEST_F(SpoolTest, TheControlPageCarriesAStopToItsReader) {
  auto page = ControlPage::Open(dir_);
  ASSERT_TRUE(page.has_value()) << page.error().what;
  EXPECT_EQ(*ReadControl(dir_), ControlState{});
  ControlState state{true, 1'700'000'000'123, 400, std::string(100, 'c')};
  ASSERT_TRUE(page->Set(state).ok());
  state.cause.resize(63);
  EXPECT_EQ(*ReadControl(dir_), state);
  EXPECT_EQ(std::filesystem::file_size(dir_ + "/control"), spool::kControlBytes);
}

TEST_F(SpoolTest, TheControlPageCarriesCheckpointAdviceAndRequests) {
  auto page = ControlPage::Open(dir_);
  ControlState state;
  state.checkpoint_every_ms = 90'000;
  state.checkpoint_now = 3;
  state.capture_now = 4;
  ASSERT_TRUE(page->Set(state).ok());
  EXPECT_EQ(*ReadControl(dir_), state);
  std::string bytes(112, '\0');
  const int fd = ::open((dir_ + "/control").c_str(), O_RDONLY);
  ASSERT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), 112);
  ::close(fd);
  // Where the Python package reads them.
  int64_t every_ms = 0;
  uint32_t counters[2] = {};
  std::memcpy(&every_ms, bytes.data() + 96, sizeof every_ms);
  std::memcpy(counters, bytes.data() + 104, sizeof counters);
  EXPECT_EQ(every_ms, 90'000);
  EXPECT_EQ(counters[0], 3u);
  EXPECT_EQ(counters[1], 4u);
}

TEST_F(SpoolTest, ARestartedAgentKeepsTheControlPageThatRanksHaveMapped) {
  ASSERT_TRUE(ControlPage::Open(dir_)->Set({true, 5, spool::kNoStopStep, "user stop"}).ok());
  struct stat before = {};
  ::stat((dir_ + "/control").c_str(), &before);
  auto again = ControlPage::Open(dir_);
  struct stat after = {};
  ::stat((dir_ + "/control").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(ReadControl(dir_)->cause, "user stop");
}

TEST_F(SpoolTest, AControlPageLeftHalfWrittenIsNotBelievedUntilSetAgain) {
  auto page = ControlPage::Open(dir_);
  const int fd = ::open((dir_ + "/control").c_str(), O_WRONLY);
  Put(fd, 8, uint32_t{3});
  ::close(fd);
  EXPECT_EQ(ReadControl(dir_).error().code, ErrorCode::kUnavailable);
  ASSERT_TRUE(ControlPage::Open(dir_)->Set({true, 1, 2, "x"}).ok());
  EXPECT_TRUE(ReadControl(dir_)->stop);
}

}  // namespace
}  // namespace athanor
