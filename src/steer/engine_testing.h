// For tests only: an engine in virtual time, with a store on disk and a back end in memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exec/sim_executor.h"
#include "base/io/test_dir.h"
#include "launch/fake_backend.h"
#include "price/catalogue.h"
#include "record/db/database.h"
#include "steer/engine.h"

namespace athanor {

inline LaunchPlan PlanOf(const JobRecord& record) {
  LaunchPlan plan;
  for (uint32_t i = 0; i < record.current()->hosts.size(); ++i) {
    auto& host = plan.hosts.emplace_back();
    host.job = record.id;
    host.attempt = record.current()->id;
    host.spec = record.spec;
    host.host = i;
  }
  return plan;
}

// Tasks are done after a while, however many there are.
class LatePool final : public Pool {
 public:
  LatePool(SimExecutor& executor, Millis late) : executor_(executor), late_(late) {}
  [[nodiscard]] bool Submit(Task task) override {
    executor_.After(late_, std::move(task));
    return true;
  }
  void Stop() override {}

 private:
  SimExecutor& executor_;
  const Millis late_;
};

class AtOnce final : public Pool {
 public:
  [[nodiscard]] bool Submit(Task task) override {
    task();
    return true;
  }
  void Stop() override {}
};

class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    inventory_.cpu_millis = 4'000;
    inventory_.memory_bytes = 8ull << 30;
    AddBackends();
    database_ = Database::Open(dir_.path() + "/a.db", ServerMigrations()).value();
    jobs_ = std::make_unique<JobStore>(*database_);
    Begin();
  }

  virtual void AddBackends() { backends_.Add(backend_, inventory_); }

  void Begin() {
    engine_ = std::make_unique<Engine>(
        Engine::Parts{executor_, executor_.clock(), *jobs_, pool_,
                      [this](const std::string& backend, size_t) { return PoolOf(backend); },
                      backends_, log_, Catalogue::Builtin(), false,
                      [this](const JobRecord& record) -> Result<LaunchPlan> {
                        if (no_plan_) return Fail(*no_plan_);
                        return PlanOf(record);
                      },
                      [](const JobRecord&, const std::vector<StoredEvent>&) {},
                      [](const Error& error) { ADD_FAILURE() << error.what; }});
    ASSERT_TRUE(engine_->Start().ok());
    executor_.RunFor(Millis(100));
  }

  std::unique_ptr<Pool> PoolOf(const std::string& backend) {
    if (!late_.contains(backend)) return std::make_unique<AtOnce>();
    return std::make_unique<LatePool>(executor_, late_.at(backend));
  }

  JobId Submit(const std::string& name, uint32_t cpus, int32_t priority = 0, uint32_t nodes = 1) {
    JobRecord draft;
    draft.id = JobId::New();
    draft.key = draft.id.ToString();
    draft.created = executor_.clock().Wall();
    draft.spec.name = name;
    draft.spec.command = {"true"};
    draft.spec.resources.cpu_millis = cpus * 1'000;
    draft.spec.resources.nodes = nodes;
    draft.spec.retry.max = retries_;
    draft.spec.priority = priority;
    const JobId id = draft.id;
    engine_->Submit(std::move(draft), [](const auto& accepted) { EXPECT_TRUE(accepted); });
    executor_.RunFor(Millis(100));
    return id;
  }
  void Stop(JobId job) {
    engine_->Apply(job, StopAsked{{"user_stop", "stopped", "", ""}, "ann", Millis(0)});
    executor_.RunFor(Millis(100));
  }
  const JobRecord& Record(JobId job) const { return *engine_->Live(job); }
  AttemptId Now(JobId job) const { return Record(job).current()->id; }
  void Apply(JobId job, JobEvent event) {
    engine_->Apply(job, std::move(event),
                   [](const Status& status) { EXPECT_TRUE(status) << status.error().what; });
    executor_.RunFor(Millis(100));
  }
  std::vector<std::string> Line() const {
    std::vector<std::string> names;
    engine_->EachWaiting([&](const JobRecord& record) {
      names.push_back(record.spec.name);
      return true;
    });
    EXPECT_EQ(names.size(), engine_->waiting_count());
    return names;
  }
  std::vector<std::string> Holders() const {
    std::vector<std::string> names;
    for (const auto* record : engine_->Holding()) names.push_back(record->spec.name);
    return names;
  }

  using Names = std::vector<std::string>;
  const TestDir dir_;
  SimExecutor executor_;
  AtOnce pool_;
  std::vector<uint32_t> starts_;  // hosts for which agents were started
  FakeBackend backend_{
      4, {[this](const AttemptPlan& plan, size_t) { starts_.push_back(plan.host); }, {}, {}}};
  Backends backends_;
  std::optional<Error> no_plan_;        // why nothing can be launched
  uint32_t retries_ = 0;                // of the jobs that are submitted
  std::map<std::string, Millis> late_;  // back ends whose calls take so long
  Inventory inventory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> jobs_;
  Logger log_{-1, executor_.clock(), LogLevel::kOff};
  std::unique_ptr<Engine> engine_;
};

}  // namespace athanor
