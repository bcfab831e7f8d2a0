#include "steer/silence_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/exec/sim_executor.h"
#include "job/shown.h"

namespace athanor {
namespace {

// Planted bug: tell only of those that are silent. A page would show "Unknown" for ever.
TEST(SilenceWatch, TellsOnceWhenASilenceBeginsAndOnceWhenItEnds) {
  SimExecutor executor;
  JobRecord record;
  record.id = JobId::New();
  record.state = JobState::kRunning;
  record.last_seen = executor.clock().Wall();
  std::vector<bool> told;  // whether the job was silent then
  SilenceWatch watch({executor, executor.clock(),
                      [&] { return std::vector<const JobRecord*>{&record}; },
                      [&](JobId job) {
                        EXPECT_EQ(job, record.id);
                        told.push_back(SilentSince(record, executor.clock().Wall()).has_value());
                      }});
  watch.Start();
  executor.RunFor(kSilentAfter - Millis(1'000));
  EXPECT_TRUE(told.empty());
  executor.RunFor(Millis(60'000));
  EXPECT_EQ(told, (std::vector<bool>{true}));
  record.last_seen = executor.clock().Wall();
  executor.RunFor(Millis(10'000));
  EXPECT_EQ(told, (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace athanor
