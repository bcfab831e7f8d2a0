#include "job/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace athanor {
namespace {

TEST(StateTable, EveryCellIsDecidedAndTerminalStatesHaveNoWayOut) {
  size_t ways = 0;
  for (auto state : kAllStates) {
    for (auto step : kAllSteps) {
      auto next = Next(state, step);
      if (IsTerminal(state)) {
        EXPECT_FALSE(next) << NameOf(state) << " + " << NameOf(step);
      }
      if (next) {
        ++ways;
        EXPECT_NE(*next, state) << "an edge changes the state";
      }
    }
  }
  EXPECT_EQ(ways, Edges().size()) << "no two edges for one cell";
}

TEST(StateTable, EveryStateCanReachAnEndAndIsReachable) {
  for (auto start : kAllStates) {
    std::vector<JobState> reached{start};
    for (size_t i = 0; i < reached.size(); ++i) {
      for (auto step : kAllSteps) {
        auto next = Next(reached[i], step);
        if (next && std::find(reached.begin(), reached.end(), *next) == reached.end()) {
          reached.push_back(*next);
        }
      }
    }
    EXPECT_TRUE(std::any_of(reached.begin(), reached.end(), IsTerminal)) << NameOf(start);
    if (start == JobState::kQueued) {
      EXPECT_EQ(reached.size(), std::size(kAllStates));
    }
  }
}

TEST(StateTable, RoomIsTakenOnlyByPlaceAndAStopIsAlwaysPossible) {
  for (const auto& edge : Edges()) {
    if (HoldsRoom(edge.to) && !HoldsRoom(edge.from)) {
      EXPECT_EQ(edge.step, Step::kPlace);
    }
  }
  for (auto state : kAllStates) {
    if (!IsTerminal(state)) {
      EXPECT_EQ(Next(state, Step::kStop), JobState::kStopped);
    }
  }
}

TEST(StateTable, RandomHistoriesEndOnceAndStayThere) {
  auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int history = 0; history < 2000; ++history) {
    JobState state = JobState::kQueued;
    std::optional<JobState> end;
    for (int i = 0; i < 60; ++i) {
      auto next = Next(state, kAllSteps[random() % std::size(kAllSteps)]);
      if (!next) continue;
      ASSERT_FALSE(end) << "left " << NameOf(*end);
      state = *next;
      if (IsTerminal(state)) end = state;
    }
  }
}

}  // namespace
}  // namespace athanor
