#include "run/agent/captures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "run/job_files_testing.h"

namespace athanor {
namespace {

class CapturesTest : public ::testing::TestWithParam<Reach> {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(MakeDirs(DirName(dir_ / ("capture/" + name))));
    ASSERT_TRUE(ReplaceFile(dir_ / ("capture/" + name), text));
  }
  Result<bool> Keep(JobFiles& files, const std::string& entry = "capture") {
    const auto own = OpenDir(dir_.path()).value();
    if (job_.is_here()) return MoveCapture(own.get(), "capture", Place(entry));
    return SendCapture(files, own.get(), "capture", entry);
  }
  std::string Place(const std::string& name) const { return job_.dir() + "/" + name; }

  TestDir dir_;
  JobFilesAt job_{GetParam()};
};

TEST_P(CapturesTest, StepsOutliveTheAttemptAndReplaceThoseBefore) {
  Write("step-3/meta.json", "{}");
  Write("step-3/batch.pkl", SomeBytes(200'000));
  Write("step-4/meta.json", "{4}");
  EXPECT_TRUE(Keep(job_.files()).value());
  EXPECT_EQ(ReadFile(Place("capture/step-3/meta.json")).value(), "{}");
  EXPECT_TRUE(ReadFile(Place("capture/step-3/batch.pkl")).value() == SomeBytes(200'000));
  ASSERT_TRUE(RemoveTree(dir_ / "capture"));
  Write("step-9/meta.json", "{9}");
  EXPECT_TRUE(Keep(job_.files()).value());
  EXPECT_EQ(ListDir(Place("capture")).value(), std::vector<std::string>{"step-9"});
  ASSERT_TRUE(RemoveTree(dir_ / "capture"));
  Write("step-1/meta.json", "{1}");
  EXPECT_TRUE(Keep(job_.files(), "capture.algo-2").value());
  EXPECT_TRUE(Exists(Place("capture.algo-2/step-1/meta.json")));
  EXPECT_TRUE(Exists(Place("capture/step-9/meta.json")));
}

TEST_P(CapturesTest, WithoutAWholeStepThereIsNone) {
  Write("step-3/batch.pkl", "x");
  Write(".step-4/meta.json", "{}");
  Write("meta.json", "{}");
  EXPECT_FALSE(Keep(job_.files()).value());
}

INSTANTIATE_TEST_SUITE_P(Files, CapturesTest, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

// Fails from the n-th file on.
class FailingFiles : public PassedFiles {
 public:
  FailingFiles(JobFiles& to, int left) : PassedFiles(to), left_(left) {}
  Status Replace(const std::string& name, int fd) override {
    if (left_-- <= 0) return Fail(ErrorCode::kCancelled, "told to stop");
    return PassedFiles::Replace(name, fd);
  }

 private:
  int left_;
};

class CapturesElsewhere : public CapturesTest {};

// Planted bug: sending files in the order of their names.
TEST_P(CapturesElsewhere, AStepThatIsNotWholeIsNotSeen) {
  for (const char* step : {"step-1/", "step-2/"}) {
    for (const char* name : {"batch.pkl", "meta.json", "model.pt"}) {
      Write(std::string(step) + name, "x");
    }
  }
  for (int sent = 0; sent < 6; ++sent) {
    FailingFiles files(job_.files(), sent);
    EXPECT_FALSE(Keep(files));
    for (const char* step : {"capture/step-1", "capture/step-2"}) {
      if (!Exists(Place(step) + "/meta.json")) continue;
      EXPECT_EQ(ListDir(Place(step))->size(), 3u) << sent;
    }
  }
  EXPECT_TRUE(Keep(job_.files()).value());
}

TEST_P(CapturesElsewhere, WhatALinkLeadsToIsNotSent) {
  Write("step-1/meta.json", "{}");
  ASSERT_TRUE(ReplaceFile(dir_ / "secret", "secret"));
  ASSERT_EQ(::symlink((dir_ / "secret").c_str(), (dir_ / "capture/step-1/link").c_str()), 0);
  ASSERT_EQ(::symlink(dir_.path().c_str(), (dir_ / "capture/step-2").c_str()), 0);
  EXPECT_TRUE(Keep(job_.files()).value());
  EXPECT_EQ(job_.files().List("capture")->size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Files, CapturesElsewhere, ::testing::Values(Reach::kServer), NameOfReach);

}  // namespace
}  // namespace athanor
