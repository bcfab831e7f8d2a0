#include "record/jobs/job_store.h"
#include "record/jobs/job_summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "record/testing.h"

namespace athanor {
namespace {

class JobStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    database_ = OpenStore(dir_ / "a.db");
    ASSERT_NE(database_, nullptr);
    store_ = std::make_unique<JobStore>(*database_);
  }
  void Commit(const JobBatch& batch) {
    const Status done = store_->Commit(batch);
    ASSERT_TRUE(done.ok()) << done.error().what << ": " << done.error().why;
  }
  std::vector<std::string> Names(const JobQuery& query) {
    auto jobs = store_->List(query);
    EXPECT_TRUE(jobs) << jobs.error().what;
    std::vector<std::string> names;
    for (const auto& job : *jobs) names.push_back(job.name);
    return names;
  }

  const ScratchDir dir_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> store_;
};

using Strings = std::vector<std::string>;

TEST_F(JobStoreTest, ARecordComesBackAsItWasAlsoAfterReopening) {
  auto record = SampleJob(1);
  record.cause = {"waiting_cpus", "needs 4 CPUs, 2 are free", "ath ps", ""};
  Commit(SubmitOf(record));
  EXPECT_EQ(store_->Find(record.id).value(), record);
  store_.reset();
  database_.reset();
  SetUp();
  EXPECT_EQ(store_->Find(record.id).value(), record);
}

TEST_F(JobStoreTest, TheNewestValueOfARecordWins) {
  auto record = SampleJob(1);
  Commit(SubmitOf(record));
  record.state = JobState::kFailed;
  record.ended = WallTime{record.created.ms + 5'000};
  record.cause = {"out_of_memory", "killed", "", ""};
  record.price.micros_per_hour = 3'600'000'000;
  Attempt attempt;
  attempt.id = AttemptId::New();
  attempt.started = WallTime{record.created.ms + 10};
  attempt.held_ms = 4'000;
  record.attempts = {attempt};
  AddMissingHosts(record);
  record.simulated = true;
  JobBatch batch;
  batch.records = {record};
  Commit(batch);
  EXPECT_EQ(store_->Find(record.id).value(), record);

  const auto jobs = store_->List({}).value();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].id, record.id);
  EXPECT_EQ(jobs[0].state, JobState::kFailed);
  EXPECT_EQ(jobs[0].started, attempt.started);
  EXPECT_EQ(jobs[0].ended, record.ended);
  EXPECT_EQ(jobs[0].cause_kind, "out_of_memory");
  EXPECT_EQ(jobs[0].cause_text, "killed");
  EXPECT_EQ(jobs[0].attempts, 1u);
  EXPECT_EQ(jobs[0].cost_micros, CostMicros(record));
  EXPECT_GT(jobs[0].cost_micros, 0);
  EXPECT_TRUE(jobs[0].simulated);
  EXPECT_EQ(jobs[0].command, "python train.py --epochs 1");
  EXPECT_EQ(jobs[0].user, "ann");
  EXPECT_EQ(jobs[0].experiment, "default");
}

TEST_F(JobStoreTest, AnUnknownJobIsNotFound) {
  const auto found = store_->Find(JobId::New());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(found.error().hint, "ath ps -a");
}

TEST_F(JobStoreTest, AKeyLeadsToItsJobAndCannotBeGivenTwice) {
  const auto record = SampleJob(1);
  Commit(SubmitOf(record));
  const auto hit = store_->FindKey(record.key).value();
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->id, record.id);
  EXPECT_EQ(hit->spec_hash, record.spec_hash);
  EXPECT_FALSE(store_->FindKey("another").value());

  auto twin = SampleJob(2);
  twin.key = record.key;
  const Status refused = store_->Commit(SubmitOf(twin));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->Count().value().jobs, 1u);
}

TEST_F(JobStoreTest, ABatchWithOneBadPartLeavesNothing) {
  const auto good = SampleJob(1);
  auto batch = SubmitOf(good);
  batch.events.push_back(SampleEvent(SampleJob(2), 1, "submitted"));  // of a job that is not there
  ASSERT_FALSE(store_->Commit(batch).ok());
  EXPECT_FALSE(store_->Find(good.id));
  EXPECT_FALSE(store_->FindKey(good.key).value());
  EXPECT_EQ(store_->LastEventPosition().value(), 0u);
}

TEST_F(JobStoreTest, AnEventsNumberIsGivenOnce) {
  const auto record = SampleJob(1);
  Commit(SubmitOf(record));
  JobBatch again;
  again.events = {SampleEvent(record, 1, "placed")};
  const Status refused = store_->Commit(again);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
}

TEST_F(JobStoreTest, TheNewestSameRunIsFound) {
  auto first = SampleJob(1);
  auto second = SampleJob(2);
  second.spec = first.spec;
  second.spec.name = "other-name";
  Commit(SubmitOf(first));
  Commit(SubmitOf(second));
  EXPECT_EQ(store_->FindSameRun(SameRunHash(first.spec)).value(), second.id);
  EXPECT_EQ(store_->FindSameRun(SameRunHash(SampleJob(3).spec)).value(), std::nullopt);
}

// Planted bug: look at the time of the newest one only, and a forgotten job hides the others.
TEST_F(JobStoreTest, WhenTheNewestIsForgottenTheOneBeforeItIsFound) {
  const auto first = SampleJob(1);
  auto second = SampleJob(2);
  second.spec = first.spec;
  Commit(SubmitOf(first));
  Commit(SubmitOf(second));
  EXPECT_EQ(store_->Resolve(first.spec.name).value(), second.id);
  JobBatch forget;
  forget.forget = {second.id};
  Commit(forget);
  EXPECT_EQ(store_->Resolve(first.spec.name).value(), first.id);
  EXPECT_EQ(store_->FindSameRun(SameRunHash(first.spec)).value(), first.id);
  EXPECT_EQ(store_->FindKey(first.key).value()->id, first.id);
}

// Planted bug: order by the time of creation. Later numbers are later times; ids rise as made.
TEST_F(JobStoreTest, AClockThatWasSetBackDoesNotMakeAJobOlder) {
  const auto first = SampleJob(9, "twice");
  auto second = SampleJob(1, "twice");
  second.spec.command = first.spec.command;
  second.state = JobState::kRunning;
  Commit(SubmitOf(first));
  Commit(SubmitOf(second));
  for (int opened = 0; opened < 2; ++opened) {
    EXPECT_EQ(store_->Resolve("@last").value(), second.id);
    EXPECT_EQ(store_->Resolve("twice").value(), second.id);
    EXPECT_EQ(store_->FindSameRun(SameRunHash(first.spec)).value(), second.id);
    JobQuery query;
    EXPECT_EQ(store_->List(query).value().front().id, second.id);
    query.before = second.id;
    EXPECT_EQ(store_->List(query).value().front().id, first.id);
    store_.reset();
    database_.reset();
    SetUp();
  }
}

// Planted bug: do not read what is in the store before the first look.
TEST_F(JobStoreTest, NamesKeysAndRunsAreFoundAfterReopening) {
  const auto record = SampleJob(1, "early-bird");
  Commit(SubmitOf(record));
  store_.reset();
  database_.reset();
  SetUp();
  auto twin = SampleJob(2);
  twin.key = record.key;
  const Status refused = store_->Commit(SubmitOf(twin));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(store_->Resolve("early-bird").value(), record.id);
  EXPECT_EQ(store_->FindKey(record.key).value()->id, record.id);
  EXPECT_EQ(store_->FindSameRun(SameRunHash(record.spec)).value(), record.id);
}

// Planted bug: say of a job that was not kept that it was.
TEST_F(JobStoreTest, WhatWasNotKeptIsNotFoundAndMayComeAgain) {
  const auto earlier = SampleJob(1);
  Commit(SubmitOf(earlier));
  auto record = SampleJob(2);
  record.spec.name = earlier.spec.name;
  auto batch = SubmitOf(record);
  batch.events.push_back(SampleEvent(SampleJob(3), 1, "submitted"));  // of a job that is not there
  ASSERT_FALSE(store_->Commit(batch).ok());
  EXPECT_EQ(store_->Resolve(record.spec.name).value(), earlier.id);
  EXPECT_FALSE(store_->FindKey(record.key).value());
  Commit(SubmitOf(record));
  EXPECT_EQ(store_->Resolve(record.spec.name).value(), record.id);
  EXPECT_EQ(store_->FindKey(record.key).value()->id, record.id);
}

TEST_F(JobStoreTest, LiveJobsComeOldestFirstWithoutTheEnded) {
  std::vector<JobRecord> jobs;
  JobBatch batch;
  for (const JobState state : {JobState::kRunning, JobState::kCompleted, JobState::kQueued,
                               JobState::kFailed, JobState::kInterrupted, JobState::kStopped}) {
    jobs.push_back(SampleJob(static_cast<int>(jobs.size())));
    jobs.back().state = state;
    // Newest first into the batch: the order of a batch must not matter.
    batch.records.insert(batch.records.begin(), jobs.back());
  }
  Commit(batch);
  EXPECT_EQ(store_->Live().value(), (std::vector<JobRecord>{jobs[0], jobs[2], jobs[4]}));
  const auto counts = store_->Count().value();
  EXPECT_EQ(counts.jobs, 6u);
  EXPECT_EQ(counts.by_state.size(), 6u);
  EXPECT_EQ(counts.by_state.front(), (std::pair<JobState, uint64_t>(JobState::kQueued, 1)));
}

TEST_F(JobStoreTest, EffectsStayUntilTheyArePerformed) {
  const auto record = SampleJob(1);
  auto batch = SubmitOf(record);
  const Effect launch{7, EffectKind::kLaunch, record.id, AttemptId::New()};
  const Effect stop{8, EffectKind::kStop, record.id, launch.attempt};
  const Effect release{9, EffectKind::kRelease, record.id, launch.attempt};
  batch.effects = {launch, stop, release};
  Commit(batch);
  EXPECT_EQ(store_->Outbox().value(), (std::vector<Effect>{launch, stop, release}));
  JobBatch done;
  done.performed = {8, 7, 12345};
  Commit(done);
  EXPECT_EQ(store_->Outbox().value(), (std::vector<Effect>{release}));
}

TEST_F(JobStoreTest, EventsAreReadByJobAndStoreWide) {
  auto first = SampleJob(1);
  auto second = SampleJob(2);
  Commit(SubmitOf(first));
  Commit(SubmitOf(second));
  JobBatch batch;
  auto placed = SampleEvent(first, 2, "placed");
  placed.state = JobState::kPlacing;
  placed.attempt = 1;
  placed.cause = {std::string("kind"), "text", "hint", "detail\nof two lines"};
  batch.events = {placed, SampleEvent(first, 3, "launched")};
  Commit(batch);

  const auto of_first = store_->Events(first.id, 1, 10).value();
  ASSERT_EQ(of_first.size(), 2u);
  EXPECT_EQ(of_first[0], placed);
  EXPECT_EQ(of_first[1].seq, 3u);
  EXPECT_EQ(store_->Events(first.id, 0, 1).value().size(), 1u);
  EXPECT_TRUE(store_->Events(first.id, UINT64_MAX, 10).value().empty());

  uint64_t position = 0;
  EXPECT_EQ(store_->EventsAfter(position, 3).value().size(), 3u);
  const auto rest = store_->EventsAfter(position, 100).value();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].name, "launched");
  EXPECT_EQ(position, store_->LastEventPosition().value());
  EXPECT_TRUE(store_->EventsAfter(position, 100).value().empty());
  EXPECT_EQ(position, store_->LastEventPosition().value());
}

TEST_F(JobStoreTest, AForgottenJobLeavesNoRowAndItsKeyIsFreeAgain) {
  const auto gone = SampleJob(1);
  const auto kept = SampleJob(2);
  auto batch = SubmitOf(gone);
  batch.effects = {{1, EffectKind::kRelease, gone.id, AttemptId::New()}};
  Commit(SubmitOf(kept));
  Commit(batch);
  const uint64_t position = store_->LastEventPosition().value();
  JobBatch forget;
  forget.forget = {gone.id, JobId::New()};
  Commit(forget);
  EXPECT_FALSE(store_->Find(gone.id));
  EXPECT_FALSE(store_->FindKey(gone.key).value());
  EXPECT_TRUE(store_->Outbox().value().empty());
  EXPECT_TRUE(store_->Events(gone.id, 0, 10).value().empty());
  EXPECT_EQ(store_->Count().value().jobs, 1u);
  // A follower's position must stay valid.
  EXPECT_EQ(store_->LastEventPosition().value(), position);
  Commit(SubmitOf(gone));
  EXPECT_TRUE(store_->Find(gone.id));
  EXPECT_GT(store_->LastEventPosition().value(), position);
}

TEST_F(JobStoreTest, AListIsFilteredAndNewestFirst) {
  JobBatch batch;
  const JobState states[] = {JobState::kQueued, JobState::kRunning, JobState::kFailed,
                             JobState::kCompleted, JobState::kFailed};
  for (int i = 0; i < 5; ++i) {
    auto record = SampleJob(i, "job-" + std::to_string(i));
    record.state = states[i];
    record.user = i % 2 == 0 ? "ann" : "bob";
    record.spec.experiment = i < 3 ? "early" : "late";
    batch.records.push_back(record);
  }
  std::ranges::reverse(batch.records);
  Commit(batch);

  JobQuery query;
  EXPECT_EQ(Names(query), (Strings{"job-4", "job-3", "job-2", "job-1", "job-0"}));
  query.limit = 2;
  EXPECT_EQ(Names(query), (Strings{"job-4", "job-3"}));
  query = {};
  query.live_only = true;
  EXPECT_EQ(Names(query), (Strings{"job-1", "job-0"}));
  query = {};
  query.states = {JobState::kFailed, JobState::kQueued, JobState::kFailed};
  EXPECT_EQ(Names(query), (Strings{"job-4", "job-2", "job-0"}));
  query.user = "ann";
  query.experiment = "early";
  EXPECT_EQ(Names(query), (Strings{"job-2", "job-0"}));
  query = {};
  query.since = WallTime{SampleJob(3).created};
  EXPECT_EQ(Names(query), (Strings{"job-4", "job-3"}));
  query = {};
  query.user = "x' OR '1'='1";
  EXPECT_EQ(Names(query), Strings{});
}

TEST(JobSummary, SaysOnHowManyNodesAndWithHowManyProcesses) {
  const auto type = [](uint32_t nodes, uint32_t processes, const char* name) {
    JobRecord record;
    record.spec.resources.nodes = nodes;
    record.spec.resources.processes = processes;
    record.spec.resources.type = name;
    return SummaryOf(record).type;
  };
  EXPECT_EQ(type(1, 1, "ml.m5.large"), "ml.m5.large");
  EXPECT_EQ(type(2, 4, ""), "2x4");
  EXPECT_EQ(type(2, 4, "ml.m5.large"), "2x4 ml.m5.large");
  const std::pair<const char*, std::pair<const char*, const char*>> parts[] = {
      {"", {"", ""}},
      {"ml.m5.large", {"", "ml.m5.large"}},
      {"2x4", {"2x4", ""}},
      {"16x1 ml.m5.large", {"16x1", "ml.m5.large"}},
      {"2xlarge", {"", "2xlarge"}},
      {"2x", {"", "2x"}},
      {"12", {"", "12"}},
      {"2x4large", {"", "2x4large"}}};
  for (const auto& [text, expected] : parts) {
    EXPECT_EQ(PartsOfType(text).ranks, expected.first) << text;
    EXPECT_EQ(PartsOfType(text).type, expected.second) << text;
  }
}

TEST_F(JobStoreTest, PagesMeetWithoutGapOrDoubleAlsoAtOneMillisecond) {
  JobBatch batch;
  for (int i = 0; i < 25; ++i) batch.records.push_back(SampleJob(i / 10, "j" + std::to_string(i)));
  Commit(batch);
  Strings seen;
  JobQuery query;
  query.limit = 4;
  while (true) {
    const auto page = store_->List(query).value();
    if (page.empty()) break;
    for (const auto& job : page) seen.push_back(job.name);
    query.before = page.back().id;
  }
  query = {};
  EXPECT_EQ(seen, Names(query));
  EXPECT_EQ(seen.size(), 25u);
}

TEST_F(JobStoreTest, ACountIsOfAllPagesOfItsQuery) {
  JobBatch batch;
  for (int i = 0; i < 12; ++i) {
    auto record = SampleJob(i);
    record.state = i < 3 ? JobState::kFailed : JobState::kQueued;
    record.spec.experiment = i % 2 == 0 ? "even" : "odd";
    batch.records.push_back(record);
  }
  Commit(batch);
  JobQuery query;
  query.limit = 2;
  EXPECT_EQ(store_->CountOf(query).value(), 12u);
  query.before = store_->List(query).value().back().id;
  EXPECT_EQ(store_->CountOf(query).value(), 12u);
  query.experiment = "even";
  EXPECT_EQ(store_->CountOf(query).value(), 6u);
  query.states = {JobState::kFailed};
  EXPECT_EQ(store_->CountOf(query).value(), 2u);
  query.states = {JobState::kQueued};
  EXPECT_EQ(store_->CountOf(query).value(), 4u);
  query = {};
  query.live_only = true;
  EXPECT_EQ(store_->CountOf(query).value(), 9u);
}

TEST_F(JobStoreTest, StagesSayHowFarEachJobIs) {
  auto waits = SampleJob(1);
  auto over = SampleJob(2);
  over.state = JobState::kCompleted;
  over.attempts.resize(2);
  for (auto& attempt : over.attempts) attempt.id = AttemptId::New();
  Commit({{waits, over}, {}, {}, {}, {}});
  auto stages = store_->Stages().value();
  std::ranges::sort(stages, {}, &JobStage::id);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].id, waits.id);
  EXPECT_EQ(stages[0].state, JobState::kQueued);
  EXPECT_EQ(stages[0].attempts, 0u);
  EXPECT_EQ(stages[1].state, JobState::kCompleted);
  EXPECT_EQ(stages[1].attempts, 2u);
}

TEST_F(JobStoreTest, APageMayBeginAtAJobThatIsGone) {
  JobBatch batch;
  for (int i = 0; i < 3; ++i) {
    auto record = SampleJob(0, "j" + std::to_string(i));
    record.id = JobId{NewUlid(1'800'000'000'000 + i)};
    record.key = record.id.ToString();
    record.created = WallTime{1'800'000'000'000 + i};
    batch.records.push_back(record);
  }
  Commit(batch);
  JobBatch forget;
  forget.forget = {batch.records[1].id};
  Commit(forget);
  JobQuery query;
  query.before = batch.records[1].id;
  EXPECT_EQ(Names(query), Strings{"j0"});
}

TEST_F(JobStoreTest, ALongCommandIsCutInListsBetweenCharacters) {
  auto record = SampleJob(1);
  record.spec.shell = true;
  record.spec.command = {""};
  for (int i = 0; i < 200; ++i) record.spec.command[0] += "é";
  record.spec.command[0].insert(0, "x");
  Commit(SubmitOf(record));
  const auto jobs = store_->List({}).value();
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_LT(jobs[0].command.size(), 250u);
  EXPECT_TRUE(jobs[0].command.ends_with("é…"));
  EXPECT_EQ(store_->Find(record.id).value(), record);
}

// Planted bug: let ParseRecord's exception or error pass as an empty record.
TEST_F(JobStoreTest, ADamagedRecordIsCorruptAndNamesTheJob) {
  const auto record = SampleJob(1);
  Commit(SubmitOf(record));
  ASSERT_TRUE(database_
                  ->Write([](Connection& c) {
                    return c.Execute("UPDATE records SET json = substr(json, 1, 40)");
                  })
                  .ok());
  const auto found = store_->Find(record.id);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(found.error().what.find(record.id.ToString()), std::string::npos);
  EXPECT_FALSE(store_->Live());
  EXPECT_EQ(store_->List({}).value().size(), 1u);  // lists never read it
}

}  // namespace
}  // namespace athanor
