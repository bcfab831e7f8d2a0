#include "steer/agent_lives.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

// Launches one that reports for `lived` and is then found gone.
bool Dies(AgentLives& lives, Millis& now, Millis lived) {
  lives.Launched(now);
  for (Millis heard{0}; heard <= lived && lived > Millis(0); heard += Millis(500)) {
    lives.Heard(now + heard);
  }
  now += lived + Millis(4'000);
  return lives.Another();
}

TEST(AgentLives, OnesThatNeverReportAreGivenUpSoon) {
  AgentLives lives;
  Millis now{1'000};
  for (int i = 0; i < AgentLives::kMostUnheard; ++i) EXPECT_TRUE(Dies(lives, now, Millis(0))) << i;
  EXPECT_FALSE(Dies(lives, now, Millis(0)));
}

// Planted bug: counting over the attempt's whole life.
TEST(AgentLives, OnesThatLastedMayBeKilledForEver) {
  AgentLives lives;
  Millis now{1'000};
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(Dies(lives, now, AgentLives::kLasted)) << i;
}

TEST(AgentLives, TwentyKillsInARowAreLivedThroughButNotALoop) {
  AgentLives lives;
  Millis now{1'000};
  for (int i = 0; i < AgentLives::kMostShort; ++i) {
    ASSERT_TRUE(Dies(lives, now, Millis(700))) << i;
  }
  EXPECT_FALSE(Dies(lives, now, Millis(700)));
  static_assert(AgentLives::kMostShort > 20);
}

TEST(AgentLives, AReportForgivesTheSilentOnesAndALongLifeAll) {
  AgentLives lives;
  Millis now{1'000};
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < AgentLives::kMostUnheard; ++i) EXPECT_TRUE(Dies(lives, now, Millis(0)));
    EXPECT_TRUE(Dies(lives, now, Millis(500)));
  }
  EXPECT_TRUE(Dies(lives, now, AgentLives::kLasted));
  for (int i = 0; i < AgentLives::kMostUnheard; ++i) EXPECT_TRUE(Dies(lives, now, Millis(0)));
  EXPECT_FALSE(Dies(lives, now, Millis(0)));
}

TEST(AgentLives, OneOfAnEarlierServerCountsFromItsFirstReport) {
  AgentLives lives;
  lives.Heard(Millis(5'000));
  lives.Heard(Millis(5'000) + AgentLives::kLasted);
  EXPECT_TRUE(lives.Another());
  AgentLives unknown;  // gone before this server heard of it
  EXPECT_TRUE(unknown.Another());
}

}  // namespace
}  // namespace athanor
