// A real script, saving all the time in the ways scripts do, is killed at random moments.
// Each test names the bug that, planted, turns it red.
#include <gtest/gtest.h>
#include <time.h>

#include "base/io/test_dir.h"
#include "base/text/text.h"
#include "link/job_dir.h"
#include "record/fault_testing.h"
#include "run/checkpoint/checkpoint_sync.h"
#include "run/checkpoint/checkpoint_testing.h"
#include "run/checkpoint/restore.h"
#include "run/supervisor/process_tree.h"

namespace athanor {
namespace {

constexpr size_t kPieces = 6;

// A file says in each piece which save it is of, and at its end that it has one.
std::string Piece(int64_t step, size_t piece) {
  std::string text = "step " + std::to_string(step) + " piece " + std::to_string(piece) + "\n";
  return text + std::string(20'000, static_cast<char>('a' + step % 26)) + "\n";
}

std::string WholeFile(int64_t step) {
  std::string bytes;
  for (size_t i = 0; i < kPieces; ++i) bytes += Piece(step, i);
  return bytes;
}

void Doze(uint64_t microseconds) {
  const timespec pause{static_cast<time_t>(microseconds / 1'000'000),
                       static_cast<long>(microseconds % 1'000'000 * 1'000)};
  ::nanosleep(&pause, nullptr);
}

// Model and optimizer of one step, overwritten in place as torch.save does, with pauses in
// the middle that are longer than the sync's idea of rest; now and then a file of its own.
// Each file is opened before the one before it is closed: a script that rests between two
// files of one save cannot be told from one that is done. `slowness` makes it train longer
// between saves.
void SaveForEver(const std::string& dir, uint64_t seed, int64_t from, uint64_t slowness) {
  Dice dice(seed);
  for (int64_t step = from;; ++step) {
    std::vector<std::string> names{"model.pt", "optimizer.pt"};
    if (dice.Once(3)) names.push_back("step_" + std::to_string(step) + ".pt");
    int before = -1;
    for (const auto& name : names) {
      const int fd = ::open((dir + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (fd < 0) ::_exit(1);
      if (before >= 0) ::close(before);
      before = fd;
      for (size_t i = 0; i < kPieces; ++i) {
        if (!WriteAll(fd, Piece(step, i)).ok()) ::_exit(2);
        if (dice.Once(4)) Doze(dice.Below(40'000));
      }
    }
    ::close(before);
    Doze((20'000 + dice.Below(120'000)) * slowness);  // the training between saves
  }
}

int64_t StepOf(const std::string& bytes) { return std::strtoll(bytes.c_str() + 5, nullptr, 10); }

// Each file is complete, and model and optimizer are of the same step; returns that step.
int64_t ExpectWhole(const std::map<std::string, std::string>& files) {
  EXPECT_EQ(files.count("model.pt"), 1u);
  EXPECT_EQ(files.count("optimizer.pt"), 1u);
  if (files.count("model.pt") == 0 || files.count("optimizer.pt") == 0) return -1;
  for (const auto& [name, bytes] : files) {
    EXPECT_EQ(bytes.size(), WholeFile(StepOf(bytes)).size()) << name;
    EXPECT_TRUE(bytes == WholeFile(StepOf(bytes))) << name << " is torn";
  }
  EXPECT_EQ(StepOf(files.at("model.pt")), StepOf(files.at("optimizer.pt")));
  return StepOf(files.at("model.pt"));
}

// Planted bugs: open files are not checked; the stamp is not compared after reading;
// FinalSync(false) takes files as they are; a state need not be of one moment; what is seen after
// the script's death counts; a script that is dying, its files closed, counts as running.
TEST(CheckpointFaults, AScriptKilledAtAnyMomentLeavesOnlyWholeCheckpoints) {
  const uint64_t seed = TestSeed();
  Dice dice(seed);
  const TestDir dir;
  const SystemClock clock;
  int64_t step = 0;
  size_t restored_runs = 0;
  // On a machine that is busy with other work the sync makes way: then it takes more attempts,
  // longer ones and longer rests between two saves, until one has kept something.
  for (uint32_t attempt = 1; attempt <= 8 || (restored_runs == 0 && attempt <= 40); ++attempt) {
    const std::string files = dir / ("files-" + std::to_string(attempt));
    const auto job = TestJobFiles(Reach::kHere, dir.path(), "").Open(attempt);
    const auto restored = RestoreCheckpoint({*job, job_dir::kManifests}, "", files);
    ASSERT_TRUE(restored) << restored.error().what;
    ASSERT_TRUE(restored->passed_over.empty()) << restored->passed_over[0].error.what;
    ASSERT_TRUE(MakeDirs(files).ok());
    if (restored->checkpoint) {
      ++restored_runs;
      const int64_t found = ExpectWhole(TreeOf(files));
      ASSERT_FALSE(HasFailure()) << "attempt " << attempt;
      ASSERT_GE(found, step) << "a later checkpoint was lost";
      step = found;
    }
    const uint64_t script_seed = dice.Bits();
    const uint64_t slowness = 1 + attempt / 8;
    const pid_t script = ::fork();
    if (script == 0) SaveForEver(files, script_seed, step + 1, slowness);
    CheckpointSyncOptions options;
    options.dir = HeldFolder::At(files).value();
    options.attempt = attempt;
    options.part_bytes = 30'000;
    options.look_every = Millis(5);
    options.settle = Millis(15);
    options.pids = [script] { return std::vector<int>{script}; };
    options.running = [script] {
      ProcessInfo info;
      return ReadProcess("/proc", script, &info) && info.state != 'Z' && !info.exiting;
    };
    auto sync = CheckpointSync::Open(options, *job, clock);
    ASSERT_TRUE(sync) << sync.error().what;
    (*sync)->Start();
    Doze((300'000 + dice.Below(600'000)) * slowness);
    ::kill(script, SIGKILL);
    ::waitpid(script, nullptr, 0);
    const auto last = (*sync)->FinalSync(false);
    EXPECT_TRUE(last) << last.error().what;
  }
  EXPECT_GT(restored_runs, 0u) << "nothing was ever kept: the test tested nothing";
}

}  // namespace
}  // namespace athanor
