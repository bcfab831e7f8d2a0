// What the engine keeps of the line and of those that hold room; the promises under faults are
// sim/simulation_test.cc's.
#include "steer/engine.h"

#include <gtest/gtest.h>

#include "base/exec/sim_executor.h"
#include "base/io/test_dir.h"
#include "launch/fake_backend.h"
#include "price/catalogue.h"
#include "record/db/database.h"

namespace athanor {
namespace {

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
  EngineTest() {
    inventory_.cpu_millis = 4'000;
    inventory_.memory_bytes = 8ull << 30;
    database_ = Database::Open(dir_.path() + "/a.db", ServerMigrations()).value();
    jobs_ = std::make_unique<JobStore>(*database_);
    Begin();
  }

  void Begin() {
    engine_ = std::make_unique<Engine>(
        Engine::Parts{executor_, executor_.clock(), *jobs_, pool_, pool_, backend_, log_,
                      inventory_, Catalogue::Builtin(), false,
                      [](const JobRecord& record) {
                        AttemptPlan plan;
                        plan.job = record.id;
                        plan.attempt = record.current()->id;
                        plan.spec = record.spec;
                        return LaunchPlan{{plan}};
                      },
                      [](const JobRecord&, const std::vector<StoredEvent>&) {},
                      [](const Error& error) { ADD_FAILURE() << error.what; }});
    ASSERT_TRUE(engine_->Start().ok());
    executor_.RunFor(Millis(100));
  }

  JobId Submit(const std::string& name, uint32_t cpus, int32_t priority = 0) {
    JobRecord draft;
    draft.id = JobId::New();
    draft.key = draft.id.ToString();
    draft.created = executor_.clock().Wall();
    draft.spec.name = name;
    draft.spec.command = {"true"};
    draft.spec.resources.cpu_millis = cpus * 1'000;
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
  FakeBackend backend_{1};
  Inventory inventory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> jobs_;
  Logger log_{-1, executor_.clock(), LogLevel::kOff};
  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineTest, TheLineIsInTheOrderOfTheQueueAlsoAfterARestart) {
  Submit("holds", 4);
  Submit("first", 4);
  Submit("second", 4);
  Submit("hurried", 4, 5);
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(Holders(), Names{"holds"});
    EXPECT_EQ(Line(), (Names{"hurried", "first", "second"}));
    engine_.reset();
    Begin();
  }
}

// Planted bug: plan only when room comes free, and the small one waits for nothing.
TEST_F(EngineTest, AStopOfTheHeadOfTheLineLetsThoseBehindItStart) {
  Submit("holds", 3);
  const JobId large = Submit("large", 4);
  Submit("small", 1);
  EXPECT_EQ(Line(), (Names{"large", "small"})) << "the free CPU is the large one's";
  Stop(large);
  EXPECT_EQ(Line(), Names{});
  EXPECT_EQ(Holders(), (Names{"holds", "small"}));
}

// Planted bug: set a timer for each that waits, or plan again and again.
TEST_F(EngineTest, ALongLineCostsNothingWhileNothingChanges) {
  Submit("holds", 4);
  for (int i = 0; i < 200; ++i) Submit("waits", 4);
  executor_.RunFor(std::chrono::hours(1));
  const size_t ran = executor_.RunFor(std::chrono::minutes(1));
  // A look at what runs, once a second, and what that look posts.
  EXPECT_LE(ran, 130u);
}

TEST_F(EngineTest, ALongLineMovesUpWhenRoomComes) {
  const JobId holds = Submit("holds", 4);
  for (int i = 0; i < 100; ++i) Submit("waits", 4);
  EXPECT_EQ(engine_->waiting_count(), 100u);
  engine_->Apply(holds,
                 HostLost{engine_->Live(holds)->current()->id, {"agent_lost", "gone", "", ""}});
  executor_.RunFor(std::chrono::seconds(5));
  EXPECT_EQ(engine_->waiting_count(), 99u);
  EXPECT_EQ(Holders(), Names{"waits"});
}

}  // namespace
}  // namespace athanor
