#include "steer/live_news.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

TEST(LiveNews, AThousandPointsOfARunAreToldOnce) {
  LiveNews news("a");
  const auto run = JobId::New();
  for (int i = 0; i < 1000; ++i) news.Note(run, News::kPoints);
  EXPECT_EQ(news.Take(true).runs, std::set<JobId>{run});
  EXPECT_TRUE(news.Take(true).empty());
}

TEST(LiveNews, StatesDoNotWaitForNumbers) {
  LiveNews news("a");
  const auto job = JobId::New();
  const auto run = JobId::New();
  news.Note(run, News::kPoints);
  news.Note(job, News::kState);
  const auto first = news.Take(false);
  EXPECT_EQ(first.jobs, std::set<JobId>{job});
  EXPECT_TRUE(first.runs.empty());
  EXPECT_TRUE(news.HasNumbers());
  EXPECT_EQ(news.Take(true).runs, std::set<JobId>{run});
}

TEST(LiveNews, WhoWasAwayIsToldWhatHeMissedAndTheTurnHeWasCutIn) {
  LiveNews news("a");
  const auto before = JobId::New();
  const auto during = JobId::New();
  const auto after = JobId::New();
  news.Note(before, News::kState);
  news.Take(true);
  news.Note(during, News::kState);
  news.Take(true);
  const auto position = news.Position();
  news.Note(after, News::kLog);
  news.Take(true);
  const auto missed = news.Since(position);
  ASSERT_TRUE(missed);
  EXPECT_EQ(missed->jobs, std::set<JobId>{during});
  EXPECT_EQ(missed->logs, std::set<JobId>{after});
}

TEST(LiveNews, PositionsOfAnotherLifeAndThoseTooLongAgoAreAGap) {
  LiveNews news("a", 2);
  EXPECT_TRUE(news.Since("a.0"));
  for (const char* position : {"b.0", "a.1", "a.", "a", "", "a.-1", "a.0x"}) {
    EXPECT_FALSE(news.Since(position)) << position;
  }
  for (int i = 0; i < 3; ++i) news.Note(JobId::New(), News::kState);
  news.Take(true);
  EXPECT_FALSE(news.Since("a.0"));
  EXPECT_FALSE(news.Since("a.1"));
  news.Note(JobId::New(), News::kState);
  news.Take(true);
  EXPECT_TRUE(news.Since("a.2"));
}

}  // namespace
}  // namespace athanor
