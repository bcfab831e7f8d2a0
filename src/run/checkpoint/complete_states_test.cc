#include "run/checkpoint/complete_states.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

// A file whose content was last changed at `ms`.
ScannedFile File(int64_t ms, uint64_t inode = 1) {
  ScannedFile file;
  file.stamp = {1, inode, 10, ms * 1'000'000, ms * 1'000'000};
  return file;
}

struct Watching {
  CompleteStates watch{Millis(300), Millis(10'000)};
  std::vector<FileKey> open;
  size_t asked = 0;
  Snapshot kept;
  std::optional<Snapshot> Look(const Snapshot& files, int64_t now,
                               std::optional<WallTime> told = std::nullopt) {
    watch.Observe(files, Millis(now));
    return watch.WholeState(Millis(now), told, kept, [&](std::vector<FileKey>) {
      ++asked;
      return open;
    });
  }
};

TEST(CompleteStates, AFileIsWholeAfterTwoEqualLooksFarEnoughApart) {
  Watching on;
  const Snapshot files{{"a.pt", File(1)}};
  EXPECT_FALSE(on.Look(files, 0));
  EXPECT_FALSE(on.Look(files, 299));
  EXPECT_EQ(on.Look(files, 300), files);
  const Snapshot rewritten{{"a.pt", File(2)}};
  EXPECT_FALSE(on.Look(rewritten, 400));
  EXPECT_EQ(on.Look(rewritten, 700), rewritten);
}

// A script that saves every 0.2 s by writing model.tmp and renaming it to model.pt. Planted bug:
// without WholeByRename there never is a checkpoint.
TEST(CompleteStates, AFileThatIsReplacedAllTheTimeIsWholeAtAnyMoment) {
  Watching on;
  Snapshot files{{"a.json", File(1, 500)}};
  int64_t now = 0;
  std::optional<Snapshot> whole;
  for (; now < 10'000 && !whole; now += 200) {
    files["model.pt"] = File(now, static_cast<uint64_t>(1'000 + now));
    whole = on.Look(files, now);
    if (now > 0 && now < 3'000) {
      EXPECT_FALSE(whole) << "it might rest yet";
    }
  }
  EXPECT_EQ(whole, files);
  // For two, it is unknown which belong together; and one that is written in place may be
  // incomplete.
  for (const int64_t end = now + 9'000; now < end; now += 200) {
    files["model.pt"] = File(now, static_cast<uint64_t>(1'000 + now));
    files["optimizer.pt"] = File(now, static_cast<uint64_t>(900'000 + now));
    EXPECT_FALSE(on.Look(files, now));
  }
  EXPECT_EQ(on.watch.restless().size(), 2u);
  Watching in_place;
  for (now = 0; now < 9'000; now += 200) {
    EXPECT_FALSE(in_place.Look({{"model.pt", File(now)}}, now));
  }
  // An open file is not complete, whatever its name was.
  Watching opened;
  for (now = 0; now < 9'000; now += 200) {
    const auto inode = static_cast<uint64_t>(1'000 + now);
    opened.open = {{1, inode}};
    EXPECT_FALSE(opened.Look({{"model.pt", File(now, inode)}}, now));
  }
}

TEST(CompleteStates, OneFileInMotionHoldsBackAll) {
  Watching on;
  Snapshot files{{"a.pt", File(1)}};
  EXPECT_FALSE(on.Look(files, 0));
  files["b.pt"] = File(350, 2);
  EXPECT_FALSE(on.Look(files, 400));
  EXPECT_EQ(on.Look(files, 700), files);
}

TEST(CompleteStates, AFileOpenForWritingIsNotWholeHoweverStillItIs) {
  Watching on;
  const Snapshot files{{"a.pt", File(1)}};
  on.open = {{1, 1}};
  EXPECT_FALSE(on.Look(files, 0));
  EXPECT_FALSE(on.Look(files, 5'000));
  on.open.clear();
  EXPECT_EQ(on.Look(files, 5'500), files);
  const size_t asked = on.asked;
  EXPECT_EQ(on.Look(files, 6'000), files);
  EXPECT_EQ(on.asked, asked) << "what is known to be whole is not asked about again";
}

TEST(CompleteStates, JournalsHoldBackNothing) {
  Watching on;
  const ScannedFile model = File(1);
  for (int64_t now = 0; now < 2'000; now += 250) {
    const Snapshot files{{"a.pt", model},
                         {"logs/events.out.tfevents.1.host", File(now, 2)},
                         {"metrics.csv", File(now, 3)}};
    const auto whole = on.Look(files, now);
    if (now < 500) continue;
    EXPECT_EQ(whole, (Snapshot{{"a.pt", model}})) << now;
  }
  EXPECT_TRUE(SameButJournals({{"a.pt", model}, {"b.log", File(1)}}, {{"a.pt", model}}));
  EXPECT_FALSE(SameButJournals({{"a.pt", model}, {"b.pt", File(1)}}, {{"a.pt", model}}));
  EXPECT_FALSE(SameButJournals({{"a.pt", model}}, {{"a.pt", File(2)}}));
}

TEST(CompleteStates, WhatNeverRestsIsLeftOutInTheEndAndNamed) {
  Watching on;
  const ScannedFile model = File(1);
  std::optional<Snapshot> whole;
  for (int64_t now = 0; now <= 10'000; now += 200) {
    EXPECT_FALSE(whole) << now;
    whole = on.Look({{"a.pt", model}, {"ring.bin", File(now, 2)}}, now);
  }
  EXPECT_EQ(whole, (Snapshot{{"a.pt", model}}));
  EXPECT_EQ(on.watch.left_out(), std::vector<std::string>{"ring.bin"});
}

TEST(CompleteStates, AToldSaveNeedsNoSecondLookAndIsNotHeldBackByTheNext) {
  Watching on;
  const Snapshot first{{"step_1.pt", File(1'000)}};
  EXPECT_EQ(on.Look(first, 0, WallTime{1'000}), first);
  on.kept = first;
  Snapshot more = first;
  more["step_2.pt"] = File(2'000, 2);
  more["step_3.pt"] = File(2'500, 3);  // begun after the word came
  const auto whole = on.Look(more, 100, WallTime{2'000});
  more.erase("step_3.pt");
  EXPECT_EQ(whole, more);
}

TEST(CompleteStates, AToldStateOfWhichAFileIsBeingOverwrittenIsGone) {
  Watching on;
  on.kept = {{"last.pt", File(1)}};
  const Snapshot files{{"last.pt", File(2'500)}, {"step_2.pt", File(2'000, 2)}};
  EXPECT_FALSE(on.Look(files, 0, WallTime{2'000}));
  EXPECT_FALSE(on.watch.ToldState(WallTime{2'000}, on.kept));
  EXPECT_TRUE(on.watch.ToldState(WallTime{2'500}, on.kept));
}

TEST(CompleteStates, AToldFileThatIsStillOpenIsNotWhole) {
  Watching on;
  on.open = {{1, 1}};
  EXPECT_FALSE(on.Look({{"a.pt", File(1)}}, 0, WallTime{5}));
  EXPECT_FALSE(on.watch.ToldState(WallTime{500}, on.kept)) << "nobody knows whether it was";
}

TEST(CompleteStates, WhatWasOpenedWithTheWordIsOfTheNextSave) {
  Watching on;
  Snapshot files{{"step_1.pt", File(1'000, 1)}, {"step_2.pt", File(998, 2)}};
  files["step_2.pt"].born_ns = 996'000'000;  // by the kernel's clock, which is late
  on.open = {{1, 2}};
  EXPECT_FALSE(on.Look(files, 0, WallTime{1'000}));
  files.erase("step_2.pt");
  EXPECT_EQ(on.watch.ToldState(WallTime{1'000}, on.kept), files);
}

}  // namespace
}  // namespace athanor
