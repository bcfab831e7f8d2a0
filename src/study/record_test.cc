#include "study/record.h"

#include <gtest/gtest.h>

#include <cmath>

namespace athanor {
namespace {

using Kind = StudyEvent::Kind;

StudyEvent Event(Kind kind, int64_t trial = 0) {
  StudyEvent event;
  event.kind = kind;
  event.at = WallTime{5};
  event.trial = trial;
  return event;
}

TEST(StudyEvent, EveryKindReadsBackAsItWasWritten) {
  auto asked = Event(Kind::kAsked, 1);
  asked.search_id = 4;
  asked.params = R"({"lr":0.5})";
  asked.own = true;
  auto submitted = Event(Kind::kSubmitted, 1);
  submitted.job = "01job";
  auto reported = Event(Kind::kReported, 1);
  reported.points = {{1, 0.5}, {2, -3}};
  auto ended = Event(Kind::kEnded, 1);
  ended.outcome = TrialState::kStopped;
  ended.value = 0.25;
  ended.step = 9;
  ended.told = true;
  ended.cause = {"trial_stopped", "why", "hint", "detail"};
  ended.cost_micros = 7;
  ended.held_ms = 8;
  auto paused = Event(Kind::kPaused, 1);
  paused.value = 0.5;
  paused.told = true;
  auto changed = Event(Kind::kChanged);
  changed.changes = R"({"max_trials":7})";
  auto finishing = Event(Kind::kFinishing);
  finishing.finish = StudyState::kFailed;
  finishing.cause = {"no_objective", "why", "", ""};
  auto imported = Event(Kind::kImported);
  imported.params = R"({"lr":1})";
  imported.value = 2.0;
  for (const auto& event :
       {Event(Kind::kCreated), imported, asked, submitted, reported, Event(Kind::kStopping, 1),
        ended, Event(Kind::kLost, 1), paused, Event(Kind::kPromoted, 1), Event(Kind::kExhausted),
        changed, finishing, Event(Kind::kFinished)}) {
    const auto read = ReadEvent(WriteEvent(event));
    ASSERT_TRUE(read) << WriteEvent(event);
    EXPECT_EQ(*read, event) << WriteEvent(event);
  }
  auto nan = Event(Kind::kReported, 1);
  nan.points = {{1, std::nan("")}};
  EXPECT_TRUE(std::isnan(ReadEvent(WriteEvent(nan))->points[0].value));
}

TEST(StudyEvent, WhatIsNoEventIsSaid) {
  for (const char* line : {"", "[]", "{}", R"({"e":"flew"})", R"({"e":"reported","points":[1]})"}) {
    const auto read = ReadEvent(line);
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

StudyRecord Sample() {
  StudyRecord record;
  record.spec.metric = "loss";
  for (int64_t i = 1; i <= 3; ++i) {
    auto asked = Event(Kind::kAsked, i);
    asked.search_id = i - 1;
    EXPECT_TRUE(Apply(record, asked).ok());
  }
  return record;
}

TEST(StudyRecord, EventsThatCannotFollowAreRefusedAndChangeNothing) {
  auto record = Sample();
  EXPECT_FALSE(Apply(record, Event(Kind::kAsked, 3)).ok());
  EXPECT_FALSE(Apply(record, Event(Kind::kSubmitted, 9)).ok());
  EXPECT_FALSE(Apply(record, Event(Kind::kFinished)).ok());
  EXPECT_EQ(record.lines, 3u);
  EXPECT_TRUE(Apply(record, Event(Kind::kSubmitted, 1)).ok());
  EXPECT_TRUE(Apply(record, Event(Kind::kEnded, 1)).ok());
  EXPECT_FALSE(Apply(record, Event(Kind::kEnded, 1)).ok()) << "it is over";
}

TEST(StudyRecord, TheBestIsAFinishedTrialAndOnlyElseAStoppedOne) {
  auto record = Sample();
  EXPECT_EQ(record.Best(), nullptr);
  auto stopped = Event(Kind::kEnded, 1);
  stopped.outcome = TrialState::kStopped;
  stopped.value = 0.1;
  ASSERT_TRUE(Apply(record, stopped).ok());
  EXPECT_EQ(record.Best()->number, 1);
  auto done = Event(Kind::kEnded, 2);
  done.value = 0.7;
  ASSERT_TRUE(Apply(record, done).ok());
  EXPECT_EQ(record.Best()->number, 2);
  record.spec.maximize = true;
  done.trial = 3;
  done.value = 0.9;
  ASSERT_TRUE(Apply(record, done).ok());
  EXPECT_EQ(record.Best()->number, 3);
}

TEST(StudyRecord, ALostTrialIsAskedForAgainAndItsCostCounts) {
  auto record = Sample();
  ASSERT_TRUE(Apply(record, Event(Kind::kSubmitted, 1)).ok());
  auto lost = Event(Kind::kLost, 1);
  lost.cost_micros = 40;
  ASSERT_TRUE(Apply(record, lost).ok());
  EXPECT_EQ(record.trials[0].state, TrialState::kAsked);
  EXPECT_EQ(record.trials[0].losses, 1u);
  EXPECT_EQ(record.CostMicros(), 40);
}

}  // namespace
}  // namespace athanor
