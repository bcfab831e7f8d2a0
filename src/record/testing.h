// What the tests of this room share: a folder that is removed afterwards, and plausible jobs.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/io/files.h"
#include "job/codec.h"
#include "record/db/database.h"
#include "record/jobs/job_store.h"

namespace athanor {

class ScratchDir {
 public:
  ScratchDir() {
    std::string pattern = testing::TempDir() + "athanor-record-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchDir() { (void)RemoveTree(path_); }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::unique_ptr<Database> OpenStore(const std::string& path) {
  auto database = Database::Open(path, ServerMigrations());
  EXPECT_TRUE(database) << database.error().what << ": " << database.error().why;
  return database ? std::move(*database) : nullptr;
}

// The `number`-th job of a test: later numbers are newer, all are distinct.
inline JobRecord SampleJob(int number, std::string name = "brisk-heron") {
  JobRecord record;
  record.id = JobId::New();
  record.key = "key-" + record.id.ToString();
  record.user = "ann";
  record.created = WallTime{1'700'000'000'000 + number};
  record.updated = record.created;
  record.event_seq = 1;
  record.spec.name = std::move(name);
  record.spec.experiment = "default";
  record.spec.command = {"python", "train.py", "--epochs", std::to_string(number)};
  record.spec.params = {{"lr", "1e-4", Param::Kind::kNumber}};
  record.spec.inherited = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"HOME", "/home/ann"}};
  record.spec.source.bundle = std::string(64, 'b');
  record.spec_hash = SpecHash(record.spec);
  return record;
}

inline StoredEvent SampleEvent(const JobRecord& record, uint64_t seq, std::string name) {
  StoredEvent event;
  event.job = record.id;
  event.seq = seq;
  event.at = record.created;
  event.name = std::move(name);
  event.state = record.state;
  return event;
}

// A submit: the record and its first event.
inline JobBatch SubmitOf(const JobRecord& record) {
  JobBatch batch;
  batch.records = {record};
  batch.events = {SampleEvent(record, 1, "submitted")};
  return batch;
}

}  // namespace athanor
