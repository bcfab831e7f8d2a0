#include "door/native/job_choice.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(JobChoice, KnowsStatesInAnyCaseAndNamesThemAllOtherwise) {
  JobChoice choice;
  ASSERT_TRUE(ChooseStates("failed, QUEUED,Stopping", choice));
  EXPECT_EQ(choice.states, (std::vector<JobState>{JobState::kFailed, JobState::kQueued}));
  EXPECT_EQ(choice.views, std::vector<std::string_view>{"Stopping"});
  const auto wrong = ChooseStates("faild", choice);
  ASSERT_FALSE(wrong);
  for (const JobState state : kAllStates) {
    EXPECT_NE(wrong.error().hint.find(NameOf(state)), std::string::npos);
  }
}

TEST(JobChoice, TakesTagsWithAndWithoutAValue) {
  JobChoice choice;
  EXPECT_TRUE(choice.empty());
  ASSERT_TRUE(ChooseTag("team=a=b", choice));
  ASSERT_TRUE(ChooseTag("sweep", choice));
  EXPECT_EQ(choice.tags[0].value, "a=b");
  EXPECT_FALSE(choice.tags[1].value);
  EXPECT_FALSE(ChooseTag("=x", choice));
  EXPECT_TRUE(choice.looks_closer());
}

TEST(JobChoice, ReadsAnAgeAsAnyDuration) {
  JobChoice choice;
  ASSERT_TRUE(ChooseAge("1h30m", choice));
  EXPECT_EQ(*choice.older, Millis(5'400'000));
  EXPECT_FALSE(ChooseAge("old", choice));
}

}  // namespace
}  // namespace athanor
