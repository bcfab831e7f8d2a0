// What checkpoints promise after kills, torn manifests, lost parts and full disks.
// Each test names the bug that, planted, turns it red.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "record/checkpoints/checkpoint_testing.h"
#include "record/fault_testing.h"

namespace athanor {
namespace {

// What the script had at a step; `f` differs at its end only, `g` everywhere.
Contents At(uint64_t step) {
  return {{"f", std::string(2'500, 'f') + std::to_string(step)},
          {"sub/g", std::string(1'200, static_cast<char>('a' + step % 26)) + std::to_string(step)}};
}

void ExpectNewestWhole(const std::string& dir, uint64_t at_least) {
  auto store = OpenCheckpoints(dir);
  const auto newest = store.Newest();
  ASSERT_TRUE(newest);
  // A kill leaves a checkpoint or none, never a broken one.
  ASSERT_TRUE(newest->passed_over.empty()) << newest->passed_over[0].error.why;
  if (at_least == 0 && !newest->manifest) return;
  ASSERT_TRUE(newest->manifest);
  const auto step = static_cast<uint64_t>(newest->manifest->info.step.value());
  ASSERT_GE(step, at_least);
  ASSERT_EQ(ReadBack(store, *newest->manifest), At(step));
}

// Stores, commits and thins out as an agent does, for ever.
void CommitForEver(const std::string& dir, uint32_t attempt, uint64_t from,
                   const std::function<void(uint64_t)>& report) {
  auto store = OpenCheckpoints(dir);
  CheckpointSpec keep;
  keep.keep_last = 2;
  if (!store.Fence(attempt).ok()) ::_exit(2);
  for (uint64_t step = from;; ++step) {
    if (!store.Commit(ManifestOf(store, attempt, static_cast<int64_t>(step), At(step)))) ::_exit(3);
    report(step);
    if (!store.ApplyKeep(keep, {})) ::_exit(4);
  }
}

// Kills a child at a random moment after its `after`-th report; its last report.
uint64_t KillWithin(const std::string& dir, uint32_t attempt, uint64_t from, size_t after,
                    long nanoseconds) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    CommitForEver(dir, attempt, from, [&](uint64_t step) {
      if (::write(ends[1], &step, sizeof(step)) != sizeof(step)) ::_exit(1);
    });
  }
  ::close(ends[1]);
  uint64_t last = 0;
  uint64_t step = 0;
  for (size_t seen = 0; seen < after; ++seen) {
    if (::read(ends[0], &step, sizeof(step)) != sizeof(step)) break;
    last = step;
  }
  // Not to wait for anything: to be somewhere else in the next commit each time.
  const timespec pause{0, nanoseconds};
  ::nanosleep(&pause, nullptr);
  ::kill(child, SIGKILL);
  while (::read(ends[0], &step, sizeof(step)) == sizeof(step)) last = step;
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself, with " << status;
  return last;
}

// Planted bugs: the manifest is written in place instead of renamed; the manifest is
// committed before the parts; ApplyKeep removes parts before the manifest that names them.
TEST(CheckpointFaults, KilledAtAnyMomentTheNewestIsWholeAndNoReportedOneIsLost) {
  const uint64_t seed = TestSeed();
  Dice dice(seed);
  const TestDir dir;
  uint64_t last = 0;
  for (uint32_t attempt = 1; attempt <= 40; ++attempt) {
    const size_t after = dice.Below(4);
    const auto pause = static_cast<long>(dice.Below(12'000'000));
    last = std::max(last, KillWithin(dir.path(), attempt, last + 1, after, pause));
    ASSERT_NO_FATAL_FAILURE(ExpectNewestWhole(dir.path(), last)) << "attempt " << attempt;
    // What was committed but not reported counts as well.
    const auto newest = OpenCheckpoints(dir.path()).Newest();
    if (newest->manifest) last = static_cast<uint64_t>(*newest->manifest->info.step);
  }
}

// Planted bug: ParseManifest does not compare the checksum.
TEST(CheckpointFaults, ATornManifestIsPassedOverAndReported) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  CommitStep(store, 1, 1, At(1));
  CommitStep(store, 1, 2, At(2));
  const std::string path = dir / "manifests/1-2.manifest";
  const std::string text = ReadFile(path).value();
  for (size_t length = 0; length < text.size(); length += 7) {
    ASSERT_NO_FATAL_FAILURE(PutBytes(path, text.substr(0, length)));
    const auto newest = store.Newest();
    ASSERT_TRUE(newest && newest->manifest) << length;
    ASSERT_EQ(newest->manifest->info.id, "1-1") << length;
    ASSERT_EQ(newest->passed_over.size(), 1u) << length;
    const auto listing = store.List();
    ASSERT_EQ(listing->checkpoints.size(), 1u) << length;
    ASSERT_EQ(listing->damaged.size(), 1u) << length;
    ASSERT_EQ(listing->damaged[0].id, "1-2");
  }
  // Zeros, as some file systems leave a file after a power cut.
  ASSERT_NO_FATAL_FAILURE(PutBytes(path, std::string(text.size(), '\0')));
  EXPECT_EQ(store.Newest()->manifest->info.id, "1-1");
}

// Planted bug: Newest looks only whether parts exist, not at their size.
TEST(CheckpointFaults, ACheckpointWithALostOrShortPartIsNeverChosen) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  CommitStep(store, 1, 1, At(1));
  CommitStep(store, 1, 2, At(2));
  const auto newest = store.Load("1-2").value();
  const std::string part = newest.files[1].parts[0];
  const std::string path = dir / ("parts/" + part.substr(0, 2) + "/" + part);
  ASSERT_EQ(::truncate(path.c_str(), 999), 0);
  EXPECT_EQ(store.Newest()->manifest->info.id, "1-1");
  ASSERT_EQ(::unlink(path.c_str()), 0);
  const auto found = store.Newest();
  EXPECT_EQ(found->manifest->info.id, "1-1");
  ASSERT_EQ(found->passed_over.size(), 1u);
  EXPECT_NE(found->passed_over[0].error.what.find("sub/g"), std::string::npos);
}

// Planted bug: Commit does not look for its parts, or removing takes no lock.
TEST(CheckpointFaults, RemovingBesideACommitNeverTakesItsParts) {
  const TestDir dir;
  auto store = OpenCheckpoints(dir.path());
  std::atomic<bool> done{false};
  std::thread keeper([&] {
    auto mine = OpenCheckpoints(dir.path());
    CheckpointSpec last;
    last.keep_last = 1;
    while (!done) ASSERT_TRUE(mine.ApplyKeep(last, {}));
  });
  for (int64_t step = 0; step < 60; ++step) {
    // Two contents in turn: each commit names parts that the keeper is about to remove.
    const auto info = store.Commit(ManifestOf(store, 1, step, At(static_cast<uint64_t>(step % 2))));
    if (!info) {
      EXPECT_EQ(info.error().code, ErrorCode::kNotFound) << info.error().what;
    }
    const auto newest = store.Newest();
    if (!newest->manifest) continue;
    const auto kept = static_cast<uint64_t>(*newest->manifest->info.step % 2);
    EXPECT_EQ(newest->manifest->info.bytes, At(kept).at("f").size() + At(kept).at("sub/g").size());
  }
  done = true;
  keeper.join();
  const auto newest = store.Newest();
  ASSERT_TRUE(newest->manifest);
  EXPECT_TRUE(newest->passed_over.empty());
  ReadBack(store, *newest->manifest);
}

// Planted bug: the manifest's temporary is left behind, or a short write is renamed.
TEST(CheckpointFaults, OnAFullDiskTheOlderOneStaysTheNewestAndALaterCommitSucceeds) {
  SmallDisk disk("512k");
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  auto store = OpenCheckpoints(disk.path());
  CommitStep(store, 1, 1, At(1));
  const auto second = ManifestOf(store, 1, 2, At(2));
  ASSERT_NO_FATAL_FAILURE(disk.Fill(0));
  const auto refused = store.Commit(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(store.Newest()->manifest->info.id, "1-1");
  EXPECT_TRUE(store.Newest()->passed_over.empty());
  disk.Free();
  ASSERT_TRUE(store.Commit(second));
  EXPECT_EQ(ReadBack(store, *store.Newest()->manifest), At(2));
}

}  // namespace
}  // namespace athanor
