#include "run/checkpoint/kept_values.h"

#include <gtest/gtest.h>

#include "base/io/test_dir.h"
#include "link/job_dir.h"
#include "run/checkpoint/checkpoint_testing.h"

namespace athanor {
namespace {

using Value = std::optional<double>;

class ValuesOfAJob : public ::testing::TestWithParam<Reach> {
 protected:
  std::string Text() { return ReadText(*files_, job_dir::kValues, 1000).value(); }

  TestDir dir_;
  TestJobFiles job_{GetParam(), dir_.path(), ""};
  std::unique_ptr<JobFiles> files_ = job_.Open();
};
INSTANTIATE_TEST_SUITE_P(Files, ValuesOfAJob, ::testing::Values(Reach::kHere, Reach::kServer),
                         NameOfReach);

TEST_P(ValuesOfAJob, ALaterAttemptKnowsWhatAnEarlierOneSaw) {
  KeptValues first;
  EXPECT_EQ(first.At(*files_, 10, {}), Value());
  EXPECT_EQ(first.At(*files_, 10, 0.5), Value(0.5));
  EXPECT_EQ(first.At(*files_, 20, 0.1 + 0.2), Value(0.1 + 0.2));
  EXPECT_EQ(first.At(*files_, 10, 0.75), Value(0.75)) << "logged again";
  EXPECT_EQ(first.At(*files_, 10, {}), Value(0.75));
  const auto text = Text();
  EXPECT_EQ(first.At(*files_, 20, 0.1 + 0.2), Value(0.1 + 0.2));
  EXPECT_EQ(Text(), text) << "a line for each change, no more";
  KeptValues second;
  ASSERT_TRUE(second.Load(*files_));
  EXPECT_EQ(second.At(*files_, 10, {}), Value(0.75));
  EXPECT_EQ(second.At(*files_, 20, {}), Value(0.1 + 0.2));
  EXPECT_EQ(second.At(*files_, 30, {}), Value());
}

// Planted bugs: lines begin where the cut one ends; the place of the next line is not asked for
// again.
TEST_P(ValuesOfAJob, ALineThatWasCutShortCostsNoOtherLine) {
  KeptValues values;
  EXPECT_EQ(values.At(*files_, 10, 0.5), Value(0.5));
  EXPECT_EQ(values.At(*files_, 20, 0.25), Value(0.25));
  const auto whole = Text();
  ASSERT_TRUE(ReplaceWith(*files_, job_dir::kValues, whole.substr(0, whole.size() - 4)));
  EXPECT_EQ(values.At(*files_, 30, 0.125), Value(0.125));
  KeptValues next;
  ASSERT_TRUE(next.Load(*files_));
  EXPECT_EQ(next.At(*files_, 10, {}), Value(0.5));
  EXPECT_EQ(next.At(*files_, 30, {}), Value(0.125));
}

// Planted bug: values that could not be read count as none, and the best checkpoint is removed.
TEST(ValuesAtAServer, ThatItIsAwayIsNotTakenForNoValues) {
  const TestDir dir;
  TestJobFiles job(Reach::kServer, dir.path(), "");
  const auto files = job.Open();
  KeptValues first;
  EXPECT_EQ(first.At(*files, 10, 0.5), Value(0.5));
  job.Break();
  KeptValues second;
  EXPECT_EQ(second.Load(*files->Until(-1, Millis(1))).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(second.At(*files->Until(-1, Millis(1)), 20, 0.25), Value(0.25));
  job.Mend();
  ASSERT_TRUE(second.Load(*files));
  EXPECT_EQ(second.At(*files, 10, {}), Value(0.5));
  EXPECT_EQ(second.At(*files, 20, {}), Value()) << "not kept, so not known";
  EXPECT_EQ(second.At(*files, 20, 0.25), Value(0.25));
  EXPECT_EQ(second.At(*files, 20, {}), Value(0.25));
}

}  // namespace
}  // namespace athanor
