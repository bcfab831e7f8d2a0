#include "launch/fake_backend.h"

#include <set>

#include "launch/backend_conformance.h"

namespace athanor {
namespace {

LaunchPlan PlanOfNew(size_t hosts = 1) {
  LaunchPlan plan;
  plan.hosts.resize(hosts);
  const auto attempt = AttemptId::New();
  for (uint32_t i = 0; i < hosts; ++i) {
    plan.hosts[i].attempt = attempt;
    plan.hosts[i].host = i;
  }
  return plan;
}

class FakeCase {
 public:
  Backend& backend() { return backend_; }
  void RestartServer() {}  // the cluster is the fake itself, and outlives any server
  LaunchPlan NewPlan(size_t hosts) { return PlanOfNew(hosts); }
  void AwaitScript(const AttemptPlan&) {}
  void KillAgent(const AttemptPlan& plan) { backend_.AgentEnded(plan.attempt, plan.host); }
  int ScriptStarts(const AttemptPlan& plan) { return starts_[Of(plan)]; }
  bool ScriptRuns(const AttemptPlan& plan) { return running_.contains(Of(plan)); }
  void BreakHost(const AttemptPlan& plan) { broken_.insert(Of(plan)); }

 private:
  using Key = std::pair<AttemptId, uint32_t>;
  static Key Of(const AttemptPlan& plan) { return {plan.attempt, plan.host}; }

  std::map<Key, int> starts_;
  std::set<Key> running_;
  std::set<Key> broken_;
  FakeBackend backend_{3,
                       {[this](const AttemptPlan& plan, size_t) {
                          // As an agent does: it looks for the script before it starts one.
                          if (running_.insert(Of(plan)).second) ++starts_[Of(plan)];
                        },
                        [this](AttemptId attempt, uint32_t host) {
                          running_.erase({attempt, host});
                        },
                        [this](const AttemptPlan& plan) { return broken_.contains(Of(plan)); }}};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, BackendConformance, FakeCase);
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, GangConformance, FakeCase);

ErrorCode PollError(FakeBackend& backend, const std::string& handle) {
  const auto hosts = backend.Poll({handle}).front();
  return hosts ? ErrorCode::kBug : hosts.error().code;
}
HostStatus::State StateOf(FakeBackend& backend, const std::string& handle, size_t host = 0) {
  return backend.Poll({handle}).front()->at(host).state;
}

TEST(FakeBackend, AHostThatDoesNotAnswerIsNoProofOfDeath) {
  FakeBackend backend(1);
  auto handle = *backend.Launch(PlanOfNew());
  backend.Reach(0, false);
  EXPECT_EQ(PollError(backend, handle), ErrorCode::kUnavailable);
  EXPECT_EQ(backend.Release(handle).error().code, ErrorCode::kUnavailable);
  backend.Reach(0, true);
  EXPECT_EQ(StateOf(backend, handle), HostStatus::State::kAlive);
}

TEST(FakeBackend, ALostHostStaysLostForItsAttemptsAndTakesNewOnesOnceItIsBack) {
  FakeBackend backend(1);
  auto plan = PlanOfNew();
  auto handle = *backend.Launch(plan);
  backend.CrashMachine(0);
  EXPECT_EQ(StateOf(backend, handle), HostStatus::State::kGone);
  EXPECT_EQ(backend.Launch(PlanOfNew()).error().code, ErrorCode::kExhausted);
  backend.RestoreMachine(0);
  EXPECT_TRUE(backend.Launch(plan));
  EXPECT_EQ(StateOf(backend, handle), HostStatus::State::kGone);
  EXPECT_TRUE(backend.Launch(PlanOfNew()));
}

TEST(FakeBackend, AReplyMayBeLostAfterTheWorkWasDone) {
  int started = 0;
  FakeBackend backend(2, {[&](const AttemptPlan&, size_t) { ++started; }, {}, {}});
  backend.SetFates([](FakeBackend::Call) { return FakeBackend::Fate::kReplyLost; });
  auto plan = PlanOfNew();
  EXPECT_EQ(backend.Launch(plan).error().code, ErrorCode::kUnavailable);
  backend.SetFates({});
  EXPECT_TRUE(backend.Launch(plan));
  EXPECT_EQ(started, 1);
}

TEST(FakeBackend, TheHostsOfAnAttemptAreOnDifferentMachinesAndOneCanBeLostAlone) {
  FakeBackend backend(3);
  const auto plan = PlanOfNew(3);
  const auto handle = *backend.Launch(plan);
  backend.CrashMachine(*backend.MachineOf(plan.attempt(), 1));
  using enum HostStatus::State;
  EXPECT_EQ(StateOf(backend, handle, 0), kAlive);
  EXPECT_EQ(StateOf(backend, handle, 1), kGone);
  EXPECT_EQ(StateOf(backend, handle, 2), kAlive);
}

TEST(FakeBackend, ReleaseOfAGangIsDoneWhenTheLastHostAnswered) {
  std::vector<uint32_t> ended;
  FakeBackend backend(2, {{}, [&](AttemptId, uint32_t host) { ended.push_back(host); }, {}});
  const auto plan = PlanOfNew(2);
  const auto handle = *backend.Launch(plan);
  backend.Reach(*backend.MachineOf(plan.attempt(), 0), false);
  EXPECT_EQ(backend.Release(handle).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(ended, std::vector<uint32_t>{1});
  backend.Reach(*backend.MachineOf(plan.attempt(), 0), true);
  EXPECT_TRUE(backend.Release(handle));
  EXPECT_EQ(PollError(backend, handle), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace athanor
