#include "net/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/exec/serving_thread.h"
#include "base/io/fd.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
  Pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
};

// Red when the time on the wall is taken, which a busy machine makes long.
TEST(Loop, KnowsHowLongATaskKeptTheOthersWaiting) {
  Loop loop;
  loop.Post([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });
  loop.Post([&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_LT(loop.longest_task(), std::chrono::milliseconds(50));
  const auto used = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  loop.Post([&used] {
    for (const auto since = used(); used() - since < milliseconds(60);) {
    }
  });
  loop.Post([&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_GT(loop.longest_task(), std::chrono::milliseconds(50));
}

// Red if the loop's thread is not marked.
TEST(Loop, CountsLargeFilesThatAreReadOnIt) {
  const TestDir dir;
  ASSERT_TRUE(ReplaceFile(dir / "large", std::string(kLittleToRead + 1, 'x')).ok());
  ASSERT_TRUE(ReplaceFile(dir / "small", "x").ok());
  const auto before = LongReadsWhileServing();
  EXPECT_TRUE(ReadFile(dir / "large"));
  EXPECT_EQ(LongReadsWhileServing(), before);
  Loop loop;
  loop.Post([&] {
    EXPECT_TRUE(ReadFile(dir / "small"));
    EXPECT_EQ(LongReadsWhileServing(), before);
    EXPECT_TRUE(ReadFile(dir / "large"));
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(LongReadsWhileServing(), before + 1);
}

TEST(Loop, RunsWhatWasPostedInOrderFromAnyThread) {
  Loop loop;
  std::vector<int> seen;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop.Post([&seen, i] { seen.push_back(i); });
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
  other.join();
  ASSERT_EQ(seen.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST(Loop, RunsTimersByTheirDelayAndCanBeRunAgain) {
  Loop loop;
  std::vector<int> seen;
  loop.After(milliseconds(30), [&] {
    seen.push_back(2);
    loop.Stop();
  });
  loop.After(milliseconds(1), [&] { seen.push_back(1); });
  loop.Run();
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
  loop.Post([&] { loop.Stop(); });
  loop.Run();
}

TEST(Loop, NeverRunsACancelledTimerEvenOneThatIsDue) {
  Loop loop;
  bool ran = false;
  const auto later = loop.After(milliseconds(20), [&] { ran = true; });
  loop.Post([&] {
    // Both are overdue, so they come due in one turn; the first cancels the second.
    auto due = std::make_shared<Executor::TimerId>();
    loop.After(milliseconds(-2), [&loop, due] { loop.Cancel(*due); });
    *due = loop.After(milliseconds(-1), [&] { ran = true; });
    loop.Cancel(later);
    loop.After(milliseconds(40), [&] { loop.Stop(); });
  });
  loop.Run();
  EXPECT_FALSE(ran);
}

TEST(Loop, TellsWhenADescriptorIsReadableOnceOrEachTime) {
  Loop loop;
  Pipe pipe;
  int once = 0;
  int each = 0;
  Pipe second;
  auto watch = loop.Watch(pipe.read.get()).value();
  watch->WhenReadable([&] { ++once; });
  auto repeating = loop.WatchFd(second.read.get(), [&] {
    char byte;
    ASSERT_EQ(::read(second.read.get(), &byte, 1), 1);
    if (++each == 3) loop.Stop();
  });
  ASSERT_TRUE(repeating);
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  ASSERT_EQ(::write(second.write.get(), "xyz", 3), 3);
  loop.Run();
  EXPECT_EQ(each, 3);
  EXPECT_EQ(once, 1);
}

TEST(Loop, RunsNothingForAWatchThatIsGone) {
  Loop loop;
  Pipe a;
  Pipe b;
  int ran = 0;
  std::unique_ptr<FdWatch> watch_a = loop.Watch(a.read.get()).value();
  std::unique_ptr<FdWatch> watch_b = loop.Watch(b.read.get()).value();
  // Both are ready in the same turn; whichever runs first destroys the other.
  watch_a->WhenReadable([&] {
    ++ran;
    watch_b.reset();
  });
  watch_b->WhenReadable([&] {
    ++ran;
    watch_a.reset();
  });
  ASSERT_EQ(::write(a.write.get(), "x", 1), 1);
  ASSERT_EQ(::write(b.write.get(), "x", 1), 1);
  loop.After(milliseconds(20), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(ran, 1);
}

TEST(Loop, AWatchMayDestroyItself) {
  Loop loop;
  Pipe pipe;
  std::unique_ptr<FdWatch> watch;
  watch = loop.WatchFd(pipe.read.get(),
                       [&] {
                         watch.reset();
                         loop.Stop();
                       })
              .value();
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  loop.Run();
  EXPECT_EQ(watch, nullptr);
}

// Planted bug: do not record that a descriptor is no longer registered after an event that nothing
// waited for.
TEST(Loop, TellsWhatCameBeforeAnybodyWaited) {
  Loop loop;
  Pipe pipe;
  Pipe ended;
  auto watch = loop.Watch(pipe.read.get()).value();
  auto end = loop.Watch(ended.read.get()).value();
  int told = 0;
  ASSERT_EQ(::write(pipe.write.get(), "x", 1), 1);
  ended.write.reset();
  loop.After(milliseconds(20), [&] {
    const auto tell = [&] {
      if (++told == 2) loop.Stop();
    };
    watch->WhenReadable(tell);
    end->WhenReadable(tell);
  });
  loop.Run();
  EXPECT_EQ(told, 2);
}

TEST(Loop, ReadsBeforeItWritesAndForgetsTheWriteOfAWatchThatIsGone) {
  Loop loop;
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd mine(pair[0]);
  const UniqueFd theirs(pair[1]);
  ASSERT_EQ(::write(theirs.get(), "x", 1), 1);
  auto watch = loop.Watch(mine.get()).value();
  std::string order;
  watch->WhenWritable([&] {
    order += 'w';
    watch->WhenWritable([&] { order += 'W'; });
    watch->WhenReadable([&] {
      order += 'R';
      watch.reset();
    });
  });
  watch->WhenReadable([&] { order += 'r'; });
  loop.After(milliseconds(20), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_EQ(order, "rwR");
}

TEST(Loop, DestroysWhatIsQueuedAlsoWhatThatPostsAsItGoes) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  struct PostsAtItsEnd {
    Loop& loop;
    std::shared_ptr<int> held;
    ~PostsAtItsEnd() {
      loop.Post([held = held] { ADD_FAILURE() << "ran after the end"; });
    }
  };
  {
    Loop loop;
    std::shared_ptr<PostsAtItsEnd> last(new PostsAtItsEnd{loop, std::move(held)});
    loop.Post([last = std::move(last)] { ADD_FAILURE() << "ran without Run"; });
  }
  EXPECT_TRUE(seen.expired());
}

TEST(Loop, TellsThatAProcessEndedByItsPidfd) {
  Loop loop;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(7);
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(pidfd);
  auto watch = loop.Watch(pidfd.get()).value();
  int status = 0;
  watch->WhenReadable([&] {
    EXPECT_EQ(::waitpid(child, &status, WNOHANG), child);
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Loop, RefusesWhatCannotBeWaitedFor) {
  Loop loop;
  EXPECT_FALSE(loop.Watch(-1));
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(loop.Watch(file.get()));
}

TEST(Loop, RunsATaskForEachSignal) {
  Loop loop;
  int came = 0;
  ASSERT_TRUE(loop.OnSignal(SIGUSR1,
                            [&] {
                              if (++came == 2) return loop.Stop();
                              ::raise(SIGUSR1);
                            })
                  .ok());
  loop.Post([] { ::raise(SIGUSR1); });
  loop.Run();
  EXPECT_EQ(came, 2);
}

}  // namespace
}  // namespace athanor
