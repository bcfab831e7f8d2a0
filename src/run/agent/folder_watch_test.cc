#include "run/agent/folder_watch.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

struct Watched {
  TestDir dir;
  std::string folder = dir / "a";
  std::atomic<int> gone = 0;
  std::atomic<int> late = 0;
  std::unique_ptr<FolderWatch> watch;

  explicit Watched(Millis patience) {
    EXPECT_TRUE(MakeDirs(folder).ok());
    watch = std::make_unique<FolderWatch>(FolderWatch::Options{
        folder, [this] { Count(gone); }, [this] { Count(late); }, Millis(1), patience});
  }
  static void Count(std::atomic<int>& number) {
    ++number;
    number.notify_all();
  }
};

TEST(FolderWatch, TellsOnceThatItIsGoneAndThenThatItIsLate) {
  Watched on{Millis(1)};
  ASSERT_TRUE(RemoveTree(on.folder).ok());
  on.gone.wait(0);
  on.late.wait(0);
  on.watch.reset();
  EXPECT_EQ(on.gone, 1);
  EXPECT_EQ(on.late, 1);
}

TEST(FolderWatch, AnotherFolderInItsPlaceIsNotIt) {
  Watched on{Seconds(3'600)};
  ASSERT_TRUE(MakeDirs(on.dir / "b").ok());
  ASSERT_EQ(::rename((on.folder).c_str(), (on.dir / "old").c_str()), 0);
  ASSERT_EQ(::rename((on.dir / "b").c_str(), on.folder.c_str()), 0);
  on.gone.wait(0);
  on.watch.reset();
  EXPECT_EQ(on.late, 0) << "it went in time";
}

TEST(FolderWatch, SaysNothingWhileItIsThere) {
  Watched on{Millis(1)};
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(ReplaceFile(on.folder + "/file", "x").ok());
    ::usleep(1'000);
  }
  on.watch.reset();
  EXPECT_EQ(on.gone, 0);
}

}  // namespace
}  // namespace athanor
