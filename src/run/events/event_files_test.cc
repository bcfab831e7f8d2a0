#include "run/events/event_files.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/event_writer.h"
#include "eventfile/run_loader.h"
#include "run/job_files_testing.h"

namespace athanor {
namespace {

// A script's tree, and an agent that looks at it.
class EventFilesTest : public ::testing::TestWithParam<Reach> {
 protected:
  void SetUp() override {
    for (const char* dir : {"ml/code", "ml/output/tensorboard", "ml/input/data/train"}) {
      ASSERT_TRUE(MakeDirs(dir_ / dir).ok());
    }
    ASSERT_TRUE(ReplaceFile(dir_ / "launching", "").ok());
    SetTime(dir_ / "launching", 1000);
  }

  static void SetTime(const std::string& path, int64_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  EventFiles::Options Options(uint32_t attempt = 1) {
    EventFiles::Options options;
    options.root = HeldFolder::At(dir_ / "ml").value();
    options.index = dir_ / ("index-" + std::to_string(attempt));
    options.marker = dir_ / "launching";
    options.files = &job_.files();
    options.folder = "events";
    if (job_.is_here()) options.local_dir = Events();
    options.scratch_dir = dir_.path();
    options.attempt = attempt;
    options.problem = [this](const std::string& text) { problems_.push_back(text); };
    return options;
  }

  // "tag@step=value" of all that is there.
  static std::vector<std::string> Texts(const std::vector<EventFiles::Found>& found) {
    std::vector<std::string> texts;
    for (const auto& one : found) {
      texts.push_back(one.point.name + "@" + std::to_string(*one.point.step) + "=" +
                      std::to_string(static_cast<int>(one.point.value)));
    }
    return texts;
  }

  std::vector<EventFiles::Found> All(EventFiles& files) {
    std::vector<EventFiles::Found> found;
    for (int i = 0; i < 1000 && !files.finished(); ++i) {
      std::vector<EventFiles::Found> some;
      files.Poll(Millis(now_ += 10'000), true, 100, some);
      found.insert(found.end(), some.begin(), some.end());
      WaitUntilStored(files);
    }
    EXPECT_TRUE(files.finished());
    return found;
  }

  EventWriter Writer(const std::string& folder, int64_t time = 2000) {
    return EventWriter::Create(dir_ / ("ml/" + folder), static_cast<double>(time), "host").value();
  }

  // A script that logs `tag` at [from, to).
  void Attempt(const std::string& folder, int64_t time, int from, int to, int add) {
    auto writer = Writer(folder, time);
    for (int step = from; step < to; ++step) {
      ASSERT_TRUE(writer.Scalar("loss", step, step, step + add).ok());
    }
    ASSERT_TRUE(writer.Scalar("epoch", from / 10, from, add).ok());
    ASSERT_TRUE(writer.Flush().ok());
  }

  // The server's folder.
  std::string Events(const std::string& name = {}) const {
    return JoinPath(job_.dir() + "/events", name);
  }
  // Until everything that was read is stored.
  static void WaitUntilStored(const EventFiles& files) {
    while (!files.stored()) std::this_thread::yield();
  }
  // Polls until there are so many.
  void PollFor(EventFiles& files, size_t count, std::vector<EventFiles::Found>& found) {
    for (int i = 0; i < 100 && found.size() < count; ++i) {
      files.Poll(Millis(now_ += 10'000), false, 100, found);
      WaitUntilStored(files);
    }
  }

  TestDir dir_;
  JobFilesAt job_{GetParam()};
  int64_t now_ = 0;
  std::vector<std::string> problems_;
};

TEST_P(EventFilesTest, FollowsAFileWhileItGrows) {
  EventFiles files(Options());
  std::vector<EventFiles::Found> found;
  files.Poll(Millis(0), false, 100, found);
  EXPECT_TRUE(found.empty());
  auto writer = Writer("code/runs/Nov16_02-45-57_algo-1");
  ASSERT_TRUE(writer.Scalar("loss", 0, 5, 7).ok() && writer.Flush().ok());
  files.Poll(Millis(10'000), false, 100, found);
  EXPECT_EQ(Texts(found), std::vector<std::string>{"loss@0=7"});
  EXPECT_EQ(found[0].point.wall_ns, 5'000'000'000);
  ASSERT_TRUE(writer.Scalar("loss", 1, 6, 8).ok() && writer.Flush().ok());
  files.Poll(Millis(10'001), false, 100, found);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_GT(found[1].seq, found[0].seq);
  WaitUntilStored(files);
  // It is kept while it runs: a copy, so that what the script does to its file later changes none.
  const auto kept = Events("events.out.tfevents.0000002000.host");
  EXPECT_EQ(ReadFile(kept).value(), ReadFile(writer.path()).value());
  ASSERT_EQ(::truncate(writer.path().c_str(), 0), 0);
  EXPECT_GT(ReadFile(kept).value().size(), 0u);
}

// Planted bugs: a new agent writes the copy on from its end, or counts bytes instead of records.
TEST_P(EventFilesTest, ANewAgentGoesOnWithACopyThatWasTornAndScrubbed) {
  auto options = Options();
  options.secrets = *SecretPatterns::Make({{"KEY", "s3cret-value"}});
  const auto kept = Events("events.out.tfevents.0000002000.host");
  auto writer = Writer("code/runs/a");
  std::vector<EventFiles::Found> found;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(writer.Scalar("of s3cret-value", step, 5, step).ok() && writer.Flush().ok());
    EventFiles files(options);  // killed each time
    found.clear();
    PollFor(files, static_cast<size_t>(step + 1), found);
    ASSERT_EQ(found.size(), static_cast<size_t>(step + 1));
    EXPECT_EQ(found.back().point.name, "of ***KEY***");
    if (step == 1) {
      ASSERT_EQ(::truncate(kept.c_str(), static_cast<off_t>(ReadFile(kept).value().size() - 5)), 0);
    }
  }
  EventReader reader(UniqueFd(::open(kept.c_str(), O_RDONLY | O_CLOEXEC)));
  std::vector<int64_t> steps;
  ASSERT_TRUE(reader
                  .Poll([&](uint64_t, std::string_view payload) {
                    EXPECT_EQ(payload.find("s3cret"), std::string_view::npos);
                    EventView event;
                    ASSERT_TRUE(ReadEvent(payload, event));
                    if (event.kind == EventView::Kind::kSummary) steps.push_back(event.step);
                  })
                  .has_value());
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(reader.damage().empty());
  EXPECT_EQ(reader.tail(), 0u);
}

// Planted bug: opening the tree, or a folder of it, by path.
TEST_P(EventFilesTest, FollowsNoLinkInPlaceOfAFolderOrOfTheTree) {
  ASSERT_TRUE(MakeDirs(dir_ / "ml/elsewhere").ok());
  Attempt("elsewhere", 2000, 0, 5, 0);
  ASSERT_EQ(std::rename((dir_ / "ml/elsewhere").c_str(), (dir_ / "elsewhere").c_str()), 0);
  ASSERT_TRUE(RemoveTree(dir_ / "ml/output").ok());
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "ml/output").c_str()), 0);
  std::vector<EventFiles::Found> found;
  EventFiles files(Options());
  files.Poll(Millis(0), false, 100, found);
  ASSERT_TRUE(RemoveTree(dir_ / "ml").ok());
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "ml").c_str()), 0);
  files.Poll(Millis(10'000), false, 100, found);
  EventFiles later(Options());  // of an agent that comes when it is done
  later.Poll(Millis(0), false, 100, found);
  EXPECT_TRUE(found.empty());
}

TEST_P(EventFilesTest, AnAgentThatStartsAnewMakesTheSameNumbers) {
  std::vector<EventFiles::Found> first;
  std::vector<EventFiles::Found> second;
  Attempt("output/tensorboard/b", 2000, 0, 5, 0);
  {
    EventFiles files(Options());
    files.Poll(Millis(0), false, 100, first);
  }
  Attempt("output/tensorboard/a", 1999, 0, 5, 0);  // found later, though its name sorts first
  {
    EventFiles files(Options());
    first = All(files);
  }
  EventFiles files(Options());
  second = All(files);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].file, second[i].file);
    EXPECT_EQ(first[i].seq, second[i].seq);
    EXPECT_EQ(first[i].point.name, second[i].point.name);
  }
}

TEST_P(EventFilesTest, FoldersBecomeSubRuns) {
  std::map<std::string, std::string> known;
  const auto add = [&](const std::string& folder) {
    return known[folder] = EventFiles::SubRunOf(folder, known);
  };
  EXPECT_EQ(add("code/runs/Nov16_02-45-57_algo-1"), "");
  EXPECT_EQ(add("code/runs/Nov16_02-45-57_algo-1/Loss_train"), "Loss_train");
  EXPECT_EQ(add("code/runs/Nov16_02-45-57_algo-1/1731725157.123"), "");
  EXPECT_EQ(add("code/logs/train"), "train");
  EXPECT_EQ(add("code/logs/validation"), "validation");
  EXPECT_EQ(add("code/runs/other"), "other");
  EXPECT_EQ(add("output/other"), "other-2");
  EXPECT_EQ(add("output/abandoned"), "_abandoned");
}

TEST_P(EventFilesTest, LeavesAloneWhatIsNotTheScripts) {
  auto source = Writer("code/old");
  ASSERT_TRUE(source.Scalar("loss", 0, 0, 1).ok() && source.Flush().ok());
  SetTime(source.path(), 900);  // laid out before the script's start
  auto data = Writer("input/data/train");
  ASSERT_TRUE(data.Scalar("loss", 0, 0, 2).ok() && data.Flush().ok());
  ASSERT_TRUE(MakeDirs(dir_ / "elsewhere").ok());
  auto outside = EventWriter::Create(dir_ / "elsewhere", 2000, "host").value();
  ASSERT_TRUE(outside.Scalar("loss", 0, 0, 3).ok() && outside.Flush().ok());
  ASSERT_EQ(::symlink((dir_ / "elsewhere").c_str(), (dir_ / "ml/code/link").c_str()), 0);
  ASSERT_EQ(::symlink(outside.path().c_str(), (dir_ / "ml/code/tfevents.link").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir_ / "ml/code/tfevents.fifo").c_str(), 0600), 0);
  EventFiles files(Options());
  EXPECT_TRUE(All(files).empty());
  EXPECT_FALSE(Exists(Events()));
}

TEST_P(EventFilesTest, SaysWhereAFileIsDamagedAndGoesOn) {
  Attempt("code/runs", 2000, 0, 100, 0);
  const auto path = dir_ / "ml/code/runs/events.out.tfevents.0000002000.host";
  auto bytes = ReadFile(path).value();
  bytes[2000] = static_cast<char>(bytes[2000] ^ 1);
  ASSERT_TRUE(ReplaceFile(path, bytes).ok());
  EventFiles files(Options());
  EXPECT_EQ(All(files).size(), 100u);  // 101 but for the damaged one
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_NE(problems_[0].find("is damaged at byte"), std::string::npos);
}

// Planted bug: without Settle() the kept run has steps 50 to 99 twice.
TEST_P(EventFilesTest, AStepIsNotDoubledByTheNextAttempt) {
  Attempt("code/runs/Nov16_02-45-57_algo-1", 2000, 0, 100, 0);
  EventFiles first(Options(1));
  EXPECT_EQ(All(first).size(), 101u);
  ASSERT_TRUE(RemoveTree(dir_ / "ml/code").ok());
  Attempt("code/runs/Nov16_03-12-00_algo-1", 3000, 50, 120, 1000);
  for (int agent = 0; agent < 2; ++agent) {  // the second finds the work done
    job_.OfAttempt(2);
    EventFiles second(Options(2));
    EXPECT_EQ(All(second).size(), 71u);
    const auto runs = LoadRuns(Events()).value();
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].name, ".");
    const auto& loss = runs[0].scalars[0];
    EXPECT_EQ(loss.size(), 120u);
    EXPECT_TRUE(loss.in_order);
    EXPECT_EQ(loss.values[49], 49);
    EXPECT_EQ(loss.values[50], 1050);
    // Another tag counts steps of its own: epoch 0 of the first stays, as the second has 5.
    EXPECT_EQ(runs[0].scalars[1].steps, (std::vector<int64_t>{0, 5}));
    EXPECT_EQ(runs[1].name, "abandoned/attempt-1-by-2");
    ASSERT_EQ(runs[1].scalars.size(), 1u);
    EXPECT_EQ(runs[1].scalars[0].size(), 50u);
    EXPECT_EQ(runs[1].scalars[0].steps.front(), 50);
  }
}

// Planted bugs: an agent that only knows the files of its own attempt; one that reads them from a
// folder which is not on its machine.
TEST_P(EventFilesTest, EveryHostHasAFolderAndPartsItsOwnBranches) {
  Attempt("code/runs/a", 2000, 0, 10, 0);
  auto options = Options(1);
  options.folder = "events/algo-2";
  if (job_.is_here()) options.local_dir = Events("algo-2");
  EventFiles first(options);
  EXPECT_EQ(All(first).size(), 11u);
  ASSERT_TRUE(RemoveTree(dir_ / "ml/code").ok());
  Attempt("code/runs/b", 3000, 5, 10, 100);
  job_.OfAttempt(2);
  options = Options(2);
  options.folder = "events/algo-2";
  if (job_.is_here()) options.local_dir = Events("algo-2");
  EventFiles second(options);
  EXPECT_EQ(All(second).size(), 6u);
  EXPECT_TRUE(problems_.empty());
  const auto runs = LoadRuns(Events("algo-2")).value();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].scalars[0].size(), 10u);
  EXPECT_EQ(runs[0].scalars[0].values[5], 105);
  EXPECT_EQ(runs[1].name, "abandoned/attempt-1-by-2");
}

// After a power cut the server's disk may lack the last writes, while an agent elsewhere lives on.
// Planted bugs: the copy goes on at its old offset, or never again; points are found twice.
TEST_P(EventFilesTest, ACopyThatBecameShorterIsMadeWholeAgain) {
  const auto kept = Events("events.out.tfevents.0000002000.host");
  auto writer = Writer("code/runs/a");
  EventFiles files(Options());
  std::vector<EventFiles::Found> found;
  for (int step = 0; step < 4; ++step) {
    ASSERT_TRUE(writer.Scalar("loss", step, 5, step).ok() && writer.Flush().ok());
    if (step == 2) {
      ASSERT_EQ(::truncate(kept.c_str(), static_cast<off_t>(ReadFile(kept).value().size() - 20)),
                0);
    }
    PollFor(files, static_cast<size_t>(step + 1), found);
    files.Poll(Millis(now_ += 10'000), false, 100, found);
    WaitUntilStored(files);
  }
  for (const auto& more : All(files)) found.push_back(more);
  EXPECT_EQ(Texts(found),
            (std::vector<std::string>{"loss@0=0", "loss@1=1", "loss@2=2", "loss@3=3"}));
  EXPECT_EQ(ReadFile(kept).value(), ReadFile(writer.path()).value());
  EXPECT_TRUE(problems_.empty());
}

TEST_P(EventFilesTest, TheFirstCopyIsToldOnce) {
  Attempt("code/runs/a", 2000, 0, 5, 0);
  Attempt("code/runs/a/val", 2001, 0, 5, 0);
  auto options = Options();
  std::atomic<int> told = 0;
  options.first_kept = [&] { ++told; };
  EventFiles files(options);
  EXPECT_EQ(All(files).size(), 12u);
  EXPECT_EQ(told, 1);
}

INSTANTIATE_TEST_SUITE_P(Files, EventFilesTest, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

// Rules see what a script writes, also while the server is away. Planted bug: storing on the thread
// that reads.
class EventFilesElsewhere : public EventFilesTest {};

TEST_P(EventFilesElsewhere, ValuesAreFoundWhileTheServerIsAwayAndStoredWhenItIsBack) {
  const uint16_t port = job_.server().tls_port();
  auto writer = Writer("code/runs/a");
  EventFiles files(Options());
  std::vector<EventFiles::Found> found;
  ASSERT_TRUE(writer.Scalar("loss", 0, 5, 1).ok() && writer.Flush().ok());
  PollFor(files, 1, found);
  job_.server().Stop();
  for (int step = 1; step < 50; ++step) {
    ASSERT_TRUE(writer.Scalar("loss", step, 5, 1).ok() && writer.Flush().ok());
    files.Poll(Millis(now_ += 10'000), false, 100, found);
    EXPECT_EQ(found.size(), static_cast<size_t>(step + 1));
  }
  auto other = Writer("code/runs/a/val", 3000);  // begun meanwhile
  ASSERT_TRUE(other.Scalar("loss", 0, 5, 1).ok() && other.Flush().ok());
  files.Poll(Millis(now_ += 10'000), false, 100, found);
  EXPECT_EQ(found.size(), 51u);
  EXPECT_FALSE(files.stored());
  job_.server().Start(port);
  EXPECT_TRUE(All(files).empty());
  EXPECT_EQ(ReadFile(Events("events.out.tfevents.0000002000.host")).value(),
            ReadFile(writer.path()).value());
  EXPECT_EQ(ReadFile(Events("val/events.out.tfevents.0000003000.host")).value(),
            ReadFile(other.path()).value());
  EXPECT_TRUE(problems_.empty());
}

// What waits is bounded; the rest waits in the script's own file. Planted bug: no bound.
TEST_P(EventFilesElsewhere, ReadsNoFurtherWhenTooMuchWaits) {
  const uint16_t port = job_.server().tls_port();
  job_.server().Stop();
  auto writer = Writer("code/runs/a");
  const std::string large(1 << 20, 't');
  for (int step = 0; step < 40; ++step) {
    ASSERT_TRUE(writer.Scalar(large, step, 5, 1).ok());
  }
  ASSERT_TRUE(writer.Scalar("loss", 1, 5, 1).ok() && writer.Flush().ok());
  EventFiles files(Options());
  std::vector<EventFiles::Found> found;
  for (int i = 0; i < 100; ++i) files.Poll(Millis(now_ += 10'000), false, 100, found);
  EXPECT_TRUE(found.empty());
  job_.server().Start(port);
  EXPECT_EQ(All(files).size(), 1u);
  EXPECT_EQ(ReadFile(Events("events.out.tfevents.0000002000.host")).value(),
            ReadFile(writer.path()).value());
}

// Planted bug: trying for ever at the end, so that the job never ends.
TEST_P(EventFilesElsewhere, AServerThatRefusesDoesNotHoldUpTheEnd) {
  Attempt("code/runs/a", 2000, 0, 5, 0);
  job_.server().EndAttempt();
  EventFiles files(Options());
  All(files);
  EXPECT_TRUE(files.finished());
  ASSERT_FALSE(problems_.empty());
  EXPECT_NE(problems_[0].find("event files are not kept"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Files, EventFilesElsewhere, ::testing::Values(Reach::kServer),
                         NameOfReach);

}  // namespace
}  // namespace athanor
