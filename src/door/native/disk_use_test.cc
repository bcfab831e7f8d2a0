#include "door/native/disk_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

constexpr uint64_t kBig = 1 << 20;

class DiskUseTest : public testing::Test {
 protected:
  void Put(const std::string& path, uint64_t bytes = kBig) {
    const auto whole = JoinPath(layout_.root, path);
    ASSERT_TRUE(MakeDirs(DirName(whole)));
    ASSERT_TRUE(ReplaceFile(whole, std::string(bytes, 'x'), 0644));
  }
  static uint64_t Shared(const DiskUse& use, std::string_view name) {
    for (const auto& part : use.shared) {
      if (part.name == name) return part.bytes;
    }
    return 0;
  }

  TestDir dir_;
  StoreLayout layout_{dir_.path()};
  JobRecord job_ = [] {
    JobRecord record;
    record.id = JobId{NewUlid()};
    record.attempts.emplace_back().id = AttemptId{NewUlid()};
    return record;
  }();
};

TEST_F(DiskUseTest, GivesEachFileToItsJobByKind) {
  const auto id = job_.id.ToString();
  const std::string blob(64, 'a');
  job_.outputs.emplace_back().blob = blob;
  Put("server/logs/" + id + "/0.log");
  Put("server/series/ab/" + id + ".series", 2 * kBig);
  Put("jobs/" + id + "/parts/aa/x", 3 * kBig);
  Put("blobs/aa/" + blob, 4 * kBig);
  Put("attempts/" + job_.attempts[0].id.ToString() + "/tmp", 5 * kBig);
  DiskCount count(layout_);
  count.Add(job_);
  const auto use = count.Count(false);
  ASSERT_EQ(use.jobs.size(), 1u);
  const auto near = [](uint64_t bytes, uint64_t megabytes) {
    return bytes >= megabytes * kBig && bytes < megabytes * kBig + 64 * 1024;
  };
  EXPECT_TRUE(near(use.jobs[0].logs, 1)) << use.jobs[0].logs;
  EXPECT_TRUE(near(use.jobs[0].metrics, 2));
  EXPECT_TRUE(near(use.jobs[0].checkpoints, 3));
  EXPECT_TRUE(near(use.jobs[0].outputs, 4));
  EXPECT_TRUE(near(use.jobs[0].scratch, 5));
}

TEST_F(DiskUseTest, CountsWhatJobsShareAndAddsUp) {
  JobRecord other;
  other.id = JobId{NewUlid()};
  const std::string blob(64, 'b');
  job_.outputs.emplace_back().blob = blob;
  other.outputs.emplace_back().blob = blob;
  Put("blobs/bb/" + blob);
  Put("blobs/cc/" + std::string(64, 'c'), 2 * kBig);
  Put("cache/envs/one/lib", 3 * kBig);
  Put("objects/data/x", 4 * kBig);
  Put("server/series/ab/" + NewUlid().ToString() + ".series", 5 * kBig);
  // A second name of a file takes nothing more.
  ASSERT_EQ(::link(JoinPath(layout_.root, "cache/envs/one/lib").c_str(),
                   JoinPath(layout_.root, "cache/lib").c_str()),
            0);
  DiskCount count(layout_);
  count.Add(job_);
  count.Add(other);
  const auto use = count.Count(false);
  EXPECT_GE(Shared(use, "outputs of several jobs"), kBig);
  EXPECT_GE(Shared(use, "sources"), 2 * kBig);
  EXPECT_GE(Shared(use, "environments") + Shared(use, "cache"), 3 * kBig);
  EXPECT_LT(Shared(use, "environments") + Shared(use, "cache"), 4 * kBig);
  EXPECT_GE(Shared(use, "S3 objects"), 4 * kBig);
  EXPECT_GE(Shared(use, "runs without a job"), 5 * kBig);
  uint64_t sum = 0;
  for (const auto& part : use.shared) sum += part.bytes;
  for (const auto& job : use.jobs) sum += job.bytes();
  EXPECT_EQ(sum, use.bytes);
  EXPECT_EQ(Shared(count.Count(true), "S3 objects"), 0u);
}

}  // namespace
}  // namespace athanor
