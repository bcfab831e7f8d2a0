#include "link/wire.h"

#include <gtest/gtest.h>

#include <cmath>

#include "link/plan.h"

namespace athanor {
namespace {

TEST(Wire, AReportComesBackFrameByFrame) {
  PointsFrame points;
  points.batch.rank = 3;
  points.batch.channel = 9;
  points.batch.items = {{1, {"loss", 1ll << 60, 5, std::nan("")}},
                        {2, {"lr", std::nullopt, 6, 1e-4}}};
  std::vector<ReportFrame> frames = {
      HelloFrame{AttemptId::New(), 42},
      LogFrame{0, 1, LogStream::kStderr, 7, 8, std::string("a\0b\n", 4)},
      points,
      UsageFrame{1, 187, 3, 4},
      StartedFrame{12, {"pid namespace"}, 99},
      EndedFrame{ExitInfo{-1, 9, true}, Cause{"out_of_memory", "t", "h", "d"}},
      UploadedFrame{{{"model.tar.gz", "aa", 1, 2}}, {}, "pk"}};
  auto back = DecodeReport(EncodeReport(frames));
  ASSERT_TRUE(back) << back.error().what;
  ASSERT_EQ(back->size(), frames.size());
  EXPECT_EQ(std::get<LogFrame>((*back)[1]).bytes, std::string("a\0b\n", 4));
  const auto& items = std::get<PointsFrame>((*back)[2]).batch.items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_TRUE(std::isnan(items[0].point.value));
  EXPECT_EQ(items[0].point.step, 1ll << 60);
  EXPECT_FALSE(items[1].point.step);
  EXPECT_EQ(std::get<EndedFrame>((*back)[5]).cause.kind, "out_of_memory");
  EXPECT_EQ(std::get<UploadedFrame>((*back)[6]).outputs.front().name, "model.tar.gz");
}

TEST(Wire, ACutBatchIsRefusedAtEveryLength) {
  auto bytes = EncodeReport({HelloFrame{AttemptId::New(), 1}, UsageFrame{1, 2, 3, 4}});
  auto first = EncodeReport({HelloFrame{AttemptId::New(), 1}}).size();
  for (size_t n = 1; n < bytes.size(); ++n) {
    if (n == first) continue;
    EXPECT_FALSE(DecodeReport(std::string_view(bytes).substr(0, n))) << n;
  }
}

TEST(Wire, UnknownFramesAreSkipped) {
  std::string bytes("\xf0\x02\x00\x00\x00xx", 7);
  auto tail = EncodeReply({StopFrame{{"user_stop", "", "", ""}, 5}});
  auto reply = DecodeReply(bytes + tail);
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->size(), 1u);
  EXPECT_EQ(std::get<StopFrame>(reply->front()).grace_ms, 5);
}

TEST(Plan, ComesBackAsItWas) {
  AttemptPlan plan;
  plan.job = JobId::New();
  plan.attempt = AttemptId::New();
  plan.number = 2;
  plan.spec.name = "x";
  plan.placement.gpus = {1};
  plan.server = "https://10.0.0.1:7071";
  plan.pin = "p";
  plan.token = "t";
  plan.resume_job = "r";
  auto back = DecodePlan(EncodePlan(plan));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->spec, plan.spec);
  EXPECT_EQ(back->placement, plan.placement);
  EXPECT_EQ(back->attempt, plan.attempt);
  EXPECT_EQ(back->pin, plan.pin);
  EXPECT_EQ(back->resume_job, plan.resume_job);
  EXPECT_FALSE(DecodePlan("{\"job\": 1}"));
}

TEST(Plan, ComesBackWithThePathsOfItsHost) {
  HostPlan plan;
  plan.attempt.job = JobId::New();
  plan.attempt.attempt = AttemptId::New();
  plan.paths.dir = "/d";
  plan.paths.url = "http://127.0.0.1:7070";
  const auto back = DecodeHostPlan(EncodeHostPlan(plan));
  ASSERT_TRUE(back) << back.error().what;
  EXPECT_EQ(back->attempt.attempt, plan.attempt.attempt);
  EXPECT_EQ(back->paths.dir, "/d");
  EXPECT_EQ(back->paths.url, plan.paths.url);
  EXPECT_FALSE(back->paths.is_server_here());
  EXPECT_EQ(back->paths.job_dir(plan.attempt.job), "");
  EXPECT_FALSE(DecodeHostPlan(EncodePlan(plan.attempt)));
}

}  // namespace
}  // namespace athanor
