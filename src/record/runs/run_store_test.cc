#include "record/runs/run_store.h"
#include "record/runs/run_testing.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/exec/thread_pool.h"
#include "record/runs/run_writer.h"
#include "record/testing.h"

namespace athanor {
namespace {

RunRow SampleRun(int64_t experiment, std::string name) {
  RunRow run;
  run.id = JobId::New();
  run.experiment = experiment;
  run.name = std::move(name);
  run.user = "ann";
  run.started_ms = 1000;
  run.artifacts = "mlflow-artifacts:/1/x/artifacts";
  return run;
}

const RunRow* Find(const RunBatch& all, JobId id) {
  for (const auto& run : all.runs) {
    if (run.id == id) return &run;
  }
  return nullptr;
}

TEST(RunStore, GivesBackWhatItWasGivenAndTheLastWordCounts) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  RunStore store(*database);
  RunBatch batch;
  batch.experiments = {{7, "digits", "mlflow-artifacts:/7", false, 1, 2}};
  batch.runs = {SampleRun(7, "first"), SampleRun(7, "second")};
  const std::string run = batch.runs[0].id.value.ToHex();
  batch.labels = {{LabelKind::kParam, run, "lr", "0.1"},
                  {LabelKind::kTag, run, "a", "1"},
                  {LabelKind::kTag, run, "b", "2"},
                  {LabelKind::kTag, run, "a", "3"},
                  {LabelKind::kTag, run, "b", std::nullopt}};
  batch.datasets = {{7, "d", "abc", "local", "s", "schema", "profile"}};
  batch.inputs = {{batch.runs[0].id, "d", "abc", "[]"}};
  batch.links = {{batch.runs[0].id, "m-1", true, 5}};
  ASSERT_TRUE(store.Commit(batch).ok());
  const auto all = LoadAll(RunStore(*database));
  ASSERT_TRUE(all) << all.error().what;
  EXPECT_EQ(all->experiments.size(), 2u);  // and the default one
  ASSERT_EQ(all->runs.size(), 2u);
  EXPECT_EQ(Find(*all, batch.runs[1].id)->name, "second");
  ASSERT_EQ(all->labels.size(), 2u);
  EXPECT_EQ(all->labels[1].key, "a");
  EXPECT_EQ(all->labels[1].value, "3");
  EXPECT_EQ(all->inputs.size(), 1u);
  EXPECT_EQ(all->links.at(0).step, 5);
  EXPECT_EQ(store.Dataset(7, "d", "abc")->profile, "profile");
  EXPECT_EQ(store.Dataset(7, "d", "abd").error().code, ErrorCode::kNotFound);
}

TEST(RunStore, KeepsNothingOfAGroupThatFails) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  RunStore store(*database);
  RunBatch good;
  good.runs = {SampleRun(0, "good")};
  RunBatch bad;
  bad.runs = {SampleRun(99, "its experiment is not there")};
  EXPECT_FALSE(store.Commit({&good, &bad}).ok());
  EXPECT_TRUE(LoadAll(store)->runs.empty());
}

TEST(RunStore, RemovesARunWithAllThatIsSaidAboutIt) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  RunStore store(*database);
  RunBatch batch;
  batch.runs = {SampleRun(0, "gone"), SampleRun(0, "stays")};
  for (const auto& run : batch.runs) {
    batch.labels.push_back({LabelKind::kTag, run.id.value.ToHex(), "k", "v"});
    batch.inputs.push_back({run.id, "d", "1", "[]"});
  }
  batch.models = {{"net", "", 1, 1}, {"other", "", 1, 1}};
  batch.versions = {{"net", 1, "None", "", "s", "", "", "", 1, 1},
                    {"other", 1, "None", "", "s", "", "", "", 1, 1}};
  batch.labels.push_back({LabelKind::kModelAlias, "net", "best", "1"});
  ASSERT_TRUE(store.Commit(batch).ok());
  RunBatch gone;
  gone.runs_gone = {batch.runs[0].id};
  gone.models_gone = {"net"};
  ASSERT_TRUE(store.Commit(gone).ok());
  const auto all = LoadAll(store);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->runs.size(), 1u);
  EXPECT_EQ(all->runs[0].name, "stays");
  EXPECT_EQ(all->labels.size(), 1u);
  EXPECT_EQ(all->inputs.size(), 1u);
  EXPECT_EQ(all->versions.size(), 1u);
}

// Runs posted tasks on request.
class QueueExecutor final : public Executor {
 public:
  void Post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }
  TimerId After(std::chrono::milliseconds, Task) override { return 0; }
  void Cancel(TimerId) override {}
  void RunOne() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return !tasks_.empty(); });
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
};

// Planted bug: tell every waiting caller the outcome of the whole group.
TEST(RunWriter, TellsEachCallerOfItsOwnBatchOnceItIsDurable) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  RunStore store(*database);
  ThreadPool pool(1);
  QueueExecutor executor;
  int losses = 0;
  RunWriter writer(store, pool, executor, [&] { ++losses; });
  std::vector<bool> kept;
  RunBatch first;
  first.runs = {SampleRun(0, "first")};
  writer.Write(first, [&](const Status& status) {
    kept.push_back(status.ok());
    EXPECT_EQ(LoadAll(store)->runs.size(), 1u);
  });
  // These two wait for it and go together.
  RunBatch bad;
  bad.runs = {SampleRun(99, "no such experiment")};
  RunBatch good;
  good.runs = {SampleRun(0, "good")};
  writer.Write(bad, [&](const Status& status) { kept.push_back(status.ok()); });
  writer.Write(good, [&](const Status& status) { kept.push_back(status.ok()); });
  writer.Write({}, [&](const Status& status) { kept.push_back(status.ok()); });
  executor.RunOne();
  executor.RunOne();
  EXPECT_EQ(kept, (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(LoadAll(store)->runs.size(), 2u);
  EXPECT_EQ(losses, 1);
  pool.Stop();
}

// Planted bug: let a Write overtake what is to be written soon.
TEST(RunWriter, WhatIsToBeWrittenSoonIsAskedForOnceAndBeforeTheNextWrite) {
  const ScratchDir dir;
  auto database = OpenStore(dir / "a.db");
  RunStore store(*database);
  ThreadPool pool(1);
  QueueExecutor executor;
  const RunRow row = SampleRun(0, "of a job");
  int asked = 0;
  RunWriter writer(store, pool, executor, {}, [&](JobId run, bool whole) {
    ++asked;
    EXPECT_EQ(run, row.id);
    EXPECT_TRUE(whole);
    RunBatch batch;
    batch.runs = {row};
    return batch;
  });
  writer.WriteSoon(row.id, true);
  writer.WriteSoon(row.id, false);
  EXPECT_EQ(asked, 0);
  RunBatch tag;
  tag.labels = {{LabelKind::kTag, row.id.value.ToHex(), "k", "v"}};
  bool kept = false;
  writer.Write(tag, [&](const Status& status) { kept = status.ok(); });
  EXPECT_EQ(asked, 1);
  executor.RunOne();
  EXPECT_TRUE(kept);
  EXPECT_EQ(LoadAll(store)->runs.size(), 1u);
  pool.Stop();
}

}  // namespace
}  // namespace athanor
