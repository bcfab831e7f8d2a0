// For tests only: real stores with jobs, logs and series in a folder that is removed afterwards.
// Include nlohmann/json.hpp before.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "door/cloudwatch/cloudwatch.h"
#include "record/testing.h"

namespace athanor {

class CloudWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    database_ = OpenStore(dir_ / "a.db");
    jobs_ = std::make_unique<JobStore>(*database_);
    logs_ = LogStore::Open(dir_ / "logs").value();
    series_ = SeriesStore::Open(dir_ / "series").value();
  }

  CloudWatchSources Sources() const { return {clock_, *jobs_, *logs_, *series_}; }

  // Placed at `created` + 7 ms.
  JobRecord AddJob(const std::string& name, uint32_t hosts = 0) {
    auto record = SampleJob(++number_, name);
    Attempt attempt;
    attempt.id = AttemptId::New();
    attempt.placed = WallTime{record.created.ms + 7};
    attempt.hosts.resize(hosts);
    record.attempts = {attempt};
    record.state = JobState::kRunning;
    EXPECT_TRUE(jobs_->Commit(SubmitOf(record)).ok());
    return record;
  }
  void End(JobRecord record) {
    record.state = JobState::kCompleted;
    record.ended = WallTime{record.created.ms + 60'000};
    JobBatch batch;
    batch.records = {record};
    EXPECT_TRUE(jobs_->Commit(batch).ok());
  }
  static std::string StreamOf(const JobRecord& record) {
    return record.spec.name + "/algo-1-" + std::to_string(record.created.ms + 7);
  }

  void Print(const JobRecord& record, const std::string& bytes, int64_t wall_ms,
             LogStream stream = LogStream::kStdout, uint32_t attempt = 1, uint32_t host = 0) {
    LogChunk chunk;
    chunk.attempt = attempt;
    chunk.host = chunk.rank = host;
    chunk.stream = stream;
    chunk.offset = offsets_[{record.id, attempt, host, stream}];
    chunk.wall_ms = wall_ms;
    chunk.bytes = bytes;
    ASSERT_TRUE(logs_->Append(record.id, chunk));
    offsets_[{record.id, attempt, host, stream}] += bytes.size();
  }

  static Json Good(const CloudWatchReply& reply) {
    EXPECT_TRUE(reply) << reply.error().code << ": " << reply.error().message;
    return reply ? *reply : Json::object();
  }
  static AwsError Bad(const CloudWatchReply& reply) {
    EXPECT_FALSE(reply) << DumpJson(*reply);
    return reply ? AwsError{} : reply.error();
  }

  const ScratchDir dir_;
  const FakeClock clock_{};
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<LogStore> logs_;
  std::unique_ptr<SeriesStore> series_;
  std::map<std::tuple<JobId, uint32_t, uint32_t, LogStream>, uint64_t> offsets_;
  int number_ = 0;
};

}  // namespace athanor
