#include "launch/fake_backend.h"

#include <set>

#include "launch/backend_conformance.h"

namespace athanor {
namespace {

class FakeCase {
 public:
  Backend& backend() { return backend_; }
  void RestartServer() {}  // the cluster is the fake itself, and outlives any server
  AttemptPlan NewPlan() {
    AttemptPlan plan;
    plan.attempt = AttemptId::New();
    return plan;
  }
  void AwaitScript(const AttemptPlan&) {}
  void KillAgent(const AttemptPlan& plan) { backend_.AgentEnded(plan.attempt); }
  int ScriptStarts(const AttemptPlan& plan) { return starts_[plan.attempt]; }
  bool ScriptRuns(const AttemptPlan& plan) { return running_.contains(plan.attempt); }

 private:
  std::map<AttemptId, int> starts_;
  std::set<AttemptId> running_;
  FakeBackend backend_{3,
                       {[this](const AttemptPlan& plan, size_t) {
                          // As an agent does: it looks for the script before it starts one.
                          if (running_.insert(plan.attempt).second) ++starts_[plan.attempt];
                        },
                        [this](AttemptId attempt) { running_.erase(attempt); }}};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, BackendConformance, FakeCase);

AttemptPlan PlanOfNew() {
  AttemptPlan plan;
  plan.attempt = AttemptId::New();
  return plan;
}

TEST(FakeBackend, AHostThatDoesNotAnswerIsNoProofOfDeath) {
  FakeBackend backend(1);
  auto handle = *backend.Launch(PlanOfNew());
  backend.Reach(0, false);
  EXPECT_EQ(backend.Poll(handle).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(backend.Release(handle).error().code, ErrorCode::kUnavailable);
  backend.Reach(0, true);
  EXPECT_EQ(backend.Poll(handle)->front().state, HostStatus::State::kAlive);
}

TEST(FakeBackend, ALostHostStaysLostForItsAttemptsAndTakesNewOnesOnceItIsBack) {
  FakeBackend backend(1);
  auto plan = PlanOfNew();
  auto handle = *backend.Launch(plan);
  backend.CrashHost(0);
  EXPECT_EQ(backend.Poll(handle)->front().state, HostStatus::State::kGone);
  EXPECT_EQ(backend.Launch(PlanOfNew()).error().code, ErrorCode::kExhausted);
  backend.RestoreHost(0);
  EXPECT_TRUE(backend.Launch(plan));
  EXPECT_EQ(backend.Poll(handle)->front().state, HostStatus::State::kGone);
  EXPECT_TRUE(backend.Launch(PlanOfNew()));
}

TEST(FakeBackend, AReplyMayBeLostAfterTheWorkWasDone) {
  int started = 0;
  FakeBackend backend(2, {[&](const AttemptPlan&, size_t) { ++started; }, {}});
  backend.SetFates([](FakeBackend::Call) { return FakeBackend::Fate::kReplyLost; });
  auto plan = PlanOfNew();
  EXPECT_EQ(backend.Launch(plan).error().code, ErrorCode::kUnavailable);
  backend.SetFates({});
  EXPECT_TRUE(backend.Launch(plan));
  EXPECT_EQ(started, 1);
}

}  // namespace
}  // namespace athanor
