#include "run/rules/watcher.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

// A job with a rule, a limit for hangs, and what the watcher made of it.
struct Watched {
  Watched() {
    plan.spec.name = "j";
    plan.spec.limits.hang_after = Seconds(60);
    RuleSpec rule;
    rule.rule = "no_progress";
    rule.name = "stuck";
    rule.metric = "loss";
    rule.after = Seconds(60);
    plan.spec.rules = {rule};
    watcher.emplace(plan, clock,
                    Watcher::Actions{[this](const Firing& firing) { fired.push_back(firing.rule); },
                                     [](const Cause&) {}, [this](const Hang&) { ++hangs; }});
  }
  void Step(int64_t step) {
    PointBatch batch;
    batch.items.push_back({1, {"loss", step, 0, 0.5}});
    watcher->OnPoints(batch);
  }
  void Pass(Seconds time, bool held_up) {
    for (Seconds passed{0}; passed < time; passed += Seconds(1)) {
      clock.Advance(Seconds(1));
      watcher->Tick(0, held_up);
    }
  }

  FakeClock clock;
  AttemptPlan plan;
  std::vector<std::string> fired;
  int hangs = 0;
  std::optional<Watcher> watcher;
};

TEST(Watcher, TellsAHangAndARuleThatTimeAloneMakesTrue) {
  Watched watched;
  watched.Step(1);
  watched.Pass(Seconds(70), false);
  EXPECT_EQ(watched.hangs, 1);
  EXPECT_EQ(watched.fired, std::vector<std::string>{"stuck"});
}

// Planted bug: a script that waits for a full disk is called hung, and perhaps ended.
TEST(Watcher, NoTimePassesWhileAFullDiskHoldsTheScriptUp) {
  Watched watched;
  watched.Step(1);
  watched.Pass(Seconds(10), false);
  watched.Pass(Seconds(1'000), true);
  watched.Pass(Seconds(40), false);
  EXPECT_EQ(watched.hangs, 0);
  EXPECT_TRUE(watched.fired.empty());
  watched.Pass(Seconds(20), false);
  EXPECT_EQ(watched.hangs, 1);
  EXPECT_EQ(watched.fired.size(), 1u);
}

}  // namespace
}  // namespace athanor
