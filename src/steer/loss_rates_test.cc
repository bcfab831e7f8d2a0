#include "steer/loss_rates.h"

#include <gtest/gtest.h>

#include "base/io/test_dir.h"
#include "record/db/database.h"
#include "record/jobs/loss_store.h"
#include "steer/engine_testing.h"

namespace athanor {
namespace {

constexpr int64_t kHour = 3'600'000;

class LossRatesTest : public ::testing::Test {
 protected:
  // A job whose attempts on spot machines of a type held them for an hour each and ended so.
  JobRecord Job(const std::vector<KnownCause>& ends) {
    JobRecord record;
    record.id = JobId::New();
    record.spec.resources.type = "ml.m5.large";
    for (const auto& end : ends) {
      auto& attempt = record.attempts.emplace_back();
      attempt.number = static_cast<uint32_t>(record.attempts.size());
      attempt.spot = true;
      attempt.held_ms = kHour;
      attempt.cause = {end, std::string(end.name())};
    }
    return record;
  }
  StoredEvent Event(const char* name, JobState state, uint32_t attempt) {
    StoredEvent event;
    event.name = name;
    event.state = state;
    event.attempt = attempt;
    return event;
  }

  TestDir dir_;
  std::unique_ptr<Database> database_ =
      Database::Open(dir_.path() + "/a.db", ServerMigrations()).value();
  LossStore store_{*database_};
  AtOnce pool_;
  LossRates rates_{store_, pool_};
};

TEST_F(LossRatesTest, IsAssumedUntilOneWasLostAndMeasuredAfterThat) {
  const auto record = Job({"preempted", "completed"});
  const auto& attempt = record.attempts.back();
  EXPECT_EQ(rates_.Of(record, attempt).mtbf_ms, 6 * kHour);
  EXPECT_EQ(rates_.Of(record, attempt).source.find("assumed"), 0u);
  rates_.Count(record, {Event("requeued", JobState::kQueued, 1)});
  EXPECT_EQ(rates_.Of(record, attempt).mtbf_ms, kHour);
  rates_.Count(record, {Event("uploaded", JobState::kCompleted, 2)});
  EXPECT_EQ(rates_.Of(record, attempt).mtbf_ms, 2 * kHour);
  EXPECT_EQ(rates_.Of(record, attempt).source.find("measured: 1 in"), 0u);
}

TEST_F(LossRatesTest, CountsAnAttemptOnceAndOfItsOwnMarketOnly) {
  auto record = Job({"preempted"});
  rates_.Count(
      record,
      {Event("script_ended", JobState::kUploading, 1), Event("requeued", JobState::kQueued, 1),
       Event("waiting", JobState::kQueued, 0), Event("stopped", JobState::kStopped, 7)});
  EXPECT_EQ(store_.Of("ml.m5.large", true).value(), (TypeLosses{"ml.m5.large", true, kHour, 1}));
  record.attempts[0].spot = false;
  EXPECT_EQ(rates_.Of(record, record.attempts[0]).source.find("assumed"), 0u);
  record.attempts[0].type = "ml.m5.xlarge";  // it was escalated
  EXPECT_EQ(LossRates::TypeOf(record, record.attempts[0]), "ml.m5.xlarge");
  EXPECT_EQ(LossRates::TypeOf(JobRecord(), Attempt()), "local");
}

}  // namespace
}  // namespace athanor
