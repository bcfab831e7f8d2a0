#include "steer/hub.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(Hub, AListenerMayForgetItselfWhileItIsTold) {
  Hub hub;
  auto job = JobId::New();
  int told = 0;
  Hub::Id id = 0;
  id = hub.Listen(job, [&](JobId, News) {
    ++told;
    hub.Forget(id);
  });
  hub.Tell(job, News::kLog);
  hub.Tell(job, News::kLog);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(hub.listeners(), 0u);
}

TEST(Hub, OnlyStatesOfOtherJobsAreTold) {
  Hub hub;
  int states = 0;
  hub.ListenAll([&](JobId, News) { ++states; });
  hub.Tell(JobId::New(), News::kLog);
  hub.Tell(JobId::New(), News::kState);
  EXPECT_EQ(states, 1);
}

}  // namespace
}  // namespace athanor
