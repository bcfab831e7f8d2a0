#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "record/db/disk_reserve.h"
#include "record/fault_testing.h"
#include "record/testing.h"

namespace athanor {
namespace {

// Enough for the reserve, four times.
constexpr char kDiskSize[] = "24m";

TEST(DiskReserve, IsGivenUpOnceAndMadeAgainWhenThereIsRoom) {
  SmallDisk disk(kDiskSize);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  DiskReserve reserve(disk.path() + "/reserve", 1 << 20);
  EXPECT_TRUE(reserve.held());
  disk.Fill(0);
  EXPECT_TRUE(reserve.Release());
  EXPECT_GE(*FreeBytes(disk.path()), 1u << 20);
  EXPECT_FALSE(reserve.Release());
  reserve.Refill();
  EXPECT_FALSE(reserve.held()) << "it took the last room for itself";
  disk.Free();
  reserve.Refill();
  EXPECT_TRUE(reserve.held());
}

// Planted bug: do not give the reserve up, and a full disk loses the end of a running job.
TEST(FullDisk, TheReserveIsEnoughToStoreHowAJobEnded) {
  SmallDisk disk(kDiskSize);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  auto database = OpenStore(disk.path() + "/a.db");
  ASSERT_NE(database, nullptr);
  JobStore jobs(*database);
  std::atomic<int> told = 0;
  jobs.WaitForRoom(disk.path() + "/reserve", [&](bool) { ++told; });
  JobRecord record = SampleJob(1);
  ASSERT_TRUE(jobs.Commit(SubmitOf(record)).ok());
  disk.Fill(0);
  JobBatch batch;
  for (uint64_t seq = 2; seq < 200; ++seq) {
    batch.events.push_back(SampleEvent(record, seq, "noted"));
  }
  record.event_seq = 199;
  batch.records = {record};
  const Status committed = jobs.Commit(batch);
  EXPECT_TRUE(committed.ok()) << committed.error().what;
  EXPECT_EQ(told, 0);
  EXPECT_FALSE(Exists(disk.path() + "/reserve"));
  disk.Free();
  record.event_seq = 200;
  batch = {};
  batch.records = {record};
  batch.events = {SampleEvent(record, 200, "noted")};
  EXPECT_TRUE(jobs.Commit(batch).ok());
  EXPECT_TRUE(Exists(disk.path() + "/reserve")) << "not made again";
}

JobBatch LargeBatch(int jobs) {
  JobBatch batch;
  for (int i = 0; i < jobs; ++i) {
    JobRecord record = SampleJob(i);
    record.spec.env["LARGE"] = std::string(32 * 1024, 'x');
    batch.records.push_back(record);
    batch.events.push_back(SampleEvent(record, 1, "submitted"));
  }
  return batch;
}

// Planted bug: return kExhausted after the reserve is gone, and the server ends.
TEST(FullDisk, ACommitWithoutRoomWaitsAndGoesOnWhenThereIsSome) {
  SmallDisk disk(kDiskSize);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  auto database = OpenStore(disk.path() + "/a.db");
  ASSERT_NE(database, nullptr);
  JobStore jobs(*database);
  std::atomic<int> began = 0;
  std::atomic<int> ended = 0;
  jobs.WaitForRoom(disk.path() + "/reserve", [&](bool full) {
    ++(full ? began : ended);
    began.notify_all();
  });
  disk.Fill(0);
  const JobBatch batch = LargeBatch(256);  // more than the reserve
  Status committed = Fail(ErrorCode::kBug, "not yet");
  std::thread writer([&] { committed = jobs.Commit(batch); });
  began.wait(0);
  EXPECT_EQ(jobs.Count()->jobs, 0u) << "reads go on meanwhile, and see nothing half";
  disk.Free();
  writer.join();
  EXPECT_TRUE(committed.ok()) << committed.error().what;
  EXPECT_EQ(jobs.Count()->jobs, 256u);
  EXPECT_EQ(began, 1);
  EXPECT_EQ(ended, 1);
}

// Planted bug: wait without listening, and a server on a full disk cannot be stopped.
TEST(FullDisk, AWaitCanBeGivenUp) {
  SmallDisk disk(kDiskSize);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  auto database = OpenStore(disk.path() + "/a.db");
  ASSERT_NE(database, nullptr);
  JobStore jobs(*database);
  std::atomic<int> began = 0;
  jobs.WaitForRoom(disk.path() + "/reserve", [&](bool full) {
    if (full) ++began;
    began.notify_all();
  });
  disk.Fill(0);
  const JobBatch batch = LargeBatch(256);
  Status committed;
  std::thread writer([&] { committed = jobs.Commit(batch); });
  began.wait(0);
  jobs.GiveUpWaiting();
  writer.join();
  ASSERT_FALSE(committed.ok());
  EXPECT_EQ(committed.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(jobs.Count()->jobs, 0u);
}

}  // namespace
}  // namespace athanor
