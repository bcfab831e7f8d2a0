#include "steer/removal.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "base/io/files.h"
#include "record/logs/log_store.h"
#include "record/runs/run_store.h"
#include "record/runs/run_writer.h"
#include "record/series/series_store.h"
#include "steer/engine_testing.h"

namespace athanor {
namespace {

class RemovalTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    layout_.root = dir_.path();
    ASSERT_TRUE(MakeDirs(layout_.server()));
    logs_ = LogStore::Open(layout_.logs()).value();
    series_ = SeriesStore::Open(layout_.series()).value();
    runs_.emplace(*database_);
    writer_.emplace(*runs_, pool_, executor_);
    removal_.emplace(Removal::Parts{
        executor_, *engine_, *jobs_, *logs_, *series_, *writer_, pool_, layout_,
        [this](JobId run) {
          forgotten_.insert(run);
          return RunBatch();
        },
        [this](JobId run) { return forgotten_.contains(run) ? "" : Artifacts(run); }});
  }

  std::string Artifacts(JobId run) { return layout_.artifacts() + "/0/" + run.value.ToHex(); }

  // A job or run that has stored something everywhere.
  void Fill(JobId run) {
    LogChunk chunk;
    chunk.bytes = "a line\n";
    ASSERT_TRUE(logs_->Append(run, chunk));
    PointBatch batch;
    batch.items.push_back({1, {"loss", 1, 0, 0.5}});
    ASSERT_TRUE(series_->Append(run, batch));
    for (const auto& folder : {layout_.job(run.ToString()) + "/parts", Artifacts(run)}) {
      ASSERT_TRUE(MakeDirs(folder));
      ASSERT_TRUE(ReplaceFile(folder + "/file", "bytes"));
    }
  }
  // How much of it is left.
  int LeftOf(JobId run) {
    int left = 0;
    if (logs_->Bytes(run).value_or(0) > 0) ++left;
    if (const auto all = series_->Summaries(run); all && !all->empty()) ++left;
    if (Exists(layout_.job(run.ToString()))) ++left;
    if (Exists(Artifacts(run))) ++left;
    return left;
  }
  JobId Ended() {
    const auto job = Submit("ended", 9);  // it waits: stopping is all it takes
    Stop(job);
    Fill(job);
    return job;
  }
  template <class Remove>
  Status Done(Remove remove) {
    std::optional<Status> ended;
    remove([&](const Status& status) { ended = status; });
    executor_.RunFor(Millis(1'000));
    EXPECT_TRUE(ended);
    return ended ? *ended : Ok();
  }

  StoreLayout layout_;
  std::unique_ptr<LogStore> logs_;
  std::unique_ptr<SeriesStore> series_;
  std::optional<RunStore> runs_;
  std::optional<RunWriter> writer_;
  std::set<JobId> forgotten_;
  std::optional<Removal> removal_;
};

// Planted bug: ask for the artifacts' folder after the run was forgotten. They would stay for ever.
TEST_F(RemovalTest, NothingOfAJobStays) {
  const auto job = Ended();
  ASSERT_EQ(LeftOf(job), 4);
  EXPECT_TRUE(Done([&](auto done) { removal_->RemoveJob(job, done); }));
  EXPECT_EQ(LeftOf(job), 0);
  EXPECT_TRUE(forgotten_.contains(job));
  EXPECT_EQ(jobs_->Find(job).error().code, ErrorCode::kNotFound);
}

TEST_F(RemovalTest, ALiveJobIsRefusedWhole) {
  const auto job = Submit("live", 1);
  Fill(job);
  const auto status = Done([&](auto done) { removal_->RemoveRun(job, done); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kConflict);
  EXPECT_EQ(LeftOf(job), 4);
  EXPECT_FALSE(forgotten_.contains(job));
}

TEST_F(RemovalTest, ARunThatIsNoJobIsRemovedToo) {
  const auto run = JobId::New();
  Fill(run);
  EXPECT_TRUE(Done([&](auto done) { removal_->RemoveRun(run, done); }));
  EXPECT_EQ(LeftOf(run), 0);
}

TEST_F(RemovalTest, ManyGoOneAfterTheOtherUntilOneCannot) {
  const auto first = Ended(), live = Submit("live", 1), last = Ended();
  EXPECT_FALSE(Done([&](auto done) { removal_->RemoveRuns({first, live, last}, done); }));
  EXPECT_EQ(LeftOf(first), 0);
  EXPECT_EQ(LeftOf(last), 4);
  EXPECT_TRUE(Done([&](auto done) { removal_->RemoveRuns({last}, done); }));
  EXPECT_EQ(LeftOf(last), 0);
  EXPECT_TRUE(Done([&](auto done) { removal_->RemoveRuns({}, done); }));
}

}  // namespace
}  // namespace athanor
