#include "door/native/storage_book.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/exec/clock.h"

namespace athanor {
namespace {

// A pool whose work is done when the test says so.
class HeldPool final : public Pool {
 public:
  [[nodiscard]] bool Submit(Task task) override {
    if (!stopped_) tasks_.push_back(std::move(task));
    return !stopped_;
  }
  void Stop() override { stopped_ = true; }
  void Work() {
    auto tasks = std::move(tasks_);
    tasks_.clear();
    for (auto& task : tasks) task();
  }

 private:
  std::vector<Task> tasks_;
  bool stopped_ = false;
};

struct Book {
  FakeClock clock;
  HeldPool pool;
  int counts = 0;
  StorageBook book{clock, pool, [this] {
                     clock.Advance(Millis(100));  // what it takes
                     StorageUse use;
                     use.bytes = static_cast<uint64_t>(++counts);
                     return use;
                   }};
  std::vector<uint64_t> answers;
  void Ask() {
    book.Ask([this](const StorageUse* use) { answers.push_back(use ? use->bytes : 0); });
  }
};

TEST(StorageBook, CountsOnceForAllWhoAskMeanwhile) {
  Book book;
  book.Ask();
  book.Ask();
  EXPECT_TRUE(book.answers.empty());
  book.pool.Work();
  EXPECT_EQ(book.answers, (std::vector<uint64_t>{1, 1}));
}

TEST(StorageBook, CountsAgainWhenTwentyTimesAsLongHasPassed) {
  Book book;
  book.Ask();
  book.pool.Work();
  book.clock.Advance(Millis(1'999));
  book.Ask();
  EXPECT_EQ(book.answers, (std::vector<uint64_t>{1, 1})) << "from memory, at once";
  book.clock.Advance(Millis(1));
  book.Ask();
  book.pool.Work();
  EXPECT_EQ(book.answers, (std::vector<uint64_t>{1, 1, 2}));
}

TEST(StorageBook, AnswersAlsoWhenTheServerStops) {
  Book book;
  book.pool.Stop();
  book.Ask();
  EXPECT_EQ(book.answers, (std::vector<uint64_t>{0}));
}

}  // namespace
}  // namespace athanor
