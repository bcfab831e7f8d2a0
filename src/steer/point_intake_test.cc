#include "steer/point_intake.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/io/test_dir.h"
#include "record/series/series_store.h"

namespace athanor {
namespace {

// An intake, and what it told in which order.
class PointIntakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = SeriesStore::Open(dir_ / "series");
    ASSERT_TRUE(opened) << opened.error().what;
    series_ = std::move(*opened);
    intake_.emplace(PointIntake::Parts{*series_,
                                       [this](JobId run, const std::function<void()>& store) {
                                         EXPECT_EQ(run, run_);
                                         told_.push_back("storing");
                                         store();
                                         told_.push_back("stored");
                                       },
                                       [this](JobId run) {
                                         EXPECT_EQ(run, run_);
                                         told_.push_back("came");
                                       }});
  }
  PointBatch Loss(uint64_t seq, double value) {
    PointBatch batch;
    batch.items.push_back({seq, {"loss", static_cast<int64_t>(seq), 0, value}});
    return batch;
  }
  std::vector<std::string> Told() { return std::exchange(told_, {}); }

  const std::vector<std::string> all_{"storing", "stored", "came"};
  const std::vector<std::string> none_{"storing", "stored"};
  TestDir dir_;
  JobId run_ = JobId::New();
  std::unique_ptr<SeriesStore> series_;
  std::vector<std::string> told_;
  std::optional<PointIntake> intake_;
};

TEST_F(PointIntakeTest, TellsOfNewPointsOnceTheyAreStored) {
  EXPECT_EQ(intake_->Take(run_, Loss(1, 0.5)), 1u);
  EXPECT_EQ(Told(), all_);
  EXPECT_EQ(intake_->Add(run_, Loss(0, 0.4)), 1u);
  EXPECT_EQ(Told(), all_);
}

TEST_F(PointIntakeTest, SaysNothingOfWhatWasSentBefore) {
  ASSERT_TRUE(intake_->Take(run_, Loss(1, 0.5)));
  Told();
  EXPECT_EQ(intake_->Take(run_, Loss(1, 0.5)), 0u);
  EXPECT_EQ(Told(), none_);
}

TEST_F(PointIntakeTest, RefusesWhatTheStoreRefuses) {
  PointBatch nameless;
  nameless.items.push_back({1, {"", 1, 0, 0.5}});
  const auto taken = intake_->Take(run_, nameless);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(Told(), none_);
  EXPECT_FALSE(intake_->TakeFrames(run_, "no frames"));
  EXPECT_EQ(Told(), none_);
}

}  // namespace
}  // namespace athanor
