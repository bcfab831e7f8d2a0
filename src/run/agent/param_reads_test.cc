#include "run/agent/param_reads.h"

#include <gtest/gtest.h>

#include "base/exec/process.h"
#include "base/io/files.h"
#include "base/io/test_dir.h"
#include "run/contract/contract.h"

namespace athanor {
namespace {

using Names = std::vector<std::string>;

JobSpec Spec(Names command, bool shell = false) {
  JobSpec spec;
  spec.command = std::move(command);
  spec.shell = shell;
  spec.params = {{"lr", "0.9", Param::Kind::kNumber}, {"batch-size", "64", Param::Kind::kNumber}};
  return spec;
}

TEST(ParamReads, WatchesOnlyWhatTheCommandDoesNotPass) {
  EXPECT_EQ(ParamsToWatch(Spec({"python", "train.py"})), (Names{"lr", "batch-size"}));
  EXPECT_EQ(ParamsToWatch(Spec({"python", "train.py", "--lr", "${lr}"})), Names{"batch-size"});
  EXPECT_EQ(ParamsToWatch(Spec({"python", "train.py", "--lr", "0.9"})), Names{"batch-size"});
  EXPECT_EQ(ParamsToWatch(Spec({"python", "train.py", "--lr", "0.1"})),
            (Names{"lr", "batch-size"}));
  EXPECT_EQ(ParamsToWatch(Spec({"./train --lr $SM_HP_LR"}, true)), Names{"batch-size"});
  EXPECT_TRUE(ParamsToWatch(Spec({"python", "train.py", "${args}"})).empty());
  auto spec = Spec({"python", "train.py"});
  spec.origin = "sagemaker";
  EXPECT_TRUE(ParamsToWatch(spec).empty());
}

TEST(ParamReads, TakesTheNotesAtTheirWord) {
  const auto spec = Spec({"/usr/bin/python3", "train.py"});
  EXPECT_EQ(UnreadByNotes(spec, "python\n"), (Unread{{"lr", "batch-size"}, true}));
  EXPECT_EQ(UnreadByNotes(spec, "python\nname lr\n"), (Unread{{"batch-size"}, true}));
  EXPECT_EQ(UnreadByNotes(spec, "python\nenv SM_HP_BATCH-SIZE\nname lr\n"), Unread{});
  for (const char* all : {"python\nall\n", "python\nenv SM_HPS\n", "env SM_TRAINING_ENV\n"}) {
    EXPECT_EQ(UnreadByNotes(spec, all), Unread{}) << all;
  }
}

TEST(ParamReads, IsNotSureOfWhatNobodySaw) {
  const auto python = Spec({"python", "train.py"});
  EXPECT_FALSE(UnreadByNotes(python, "").sure);                       // without our sitecustomize
  EXPECT_FALSE(UnreadByNotes(python, "python\nwalk\n").sure);         // a copy went somewhere
  EXPECT_FALSE(UnreadByNotes(python, "python\nspawn train\n").sure);  // another program
  EXPECT_TRUE(UnreadByNotes(python, "python\nspawn uname\nspawn python3\n").sure);
  EXPECT_FALSE(UnreadByNotes(Spec({"./train"}), "").sure);
  EXPECT_FALSE(UnreadByNotes(Spec({"bash", "run.sh"}), "python\n").sure);
  EXPECT_FALSE(UnreadByNotes(Spec({"./a && python train.py"}, true), "python\n").sure);
  EXPECT_TRUE(UnreadByNotes(Spec({"python train.py"}, true), "python\n").sure);
}

class WatchedTree : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = dir_.path() + "/ml";
    AttemptPlan plan;
    plan.spec = spec_;
    ASSERT_TRUE(LayOutContract(plan, {root_, root_}).ok());
  }
  Unread Find(ParamReads& reads) { return reads.Find(spec_, *HeldFolder::At(root_)); }

  TestDir dir_;
  std::string root_;
  JobSpec spec_ = Spec({"./train"});
};

TEST_F(WatchedTree, WhoeverOpensTheFilesHasReadThemAll) {
  for (const auto& file : {root_ + "/input/config/hyperparameters.json", ParamsFile(root_)}) {
    ParamReads reads;
    reads.Watch(spec_, root_);
    ASSERT_TRUE(RunCommand({"/bin/cat", file}, {})->ok());
    EXPECT_EQ(Find(reads), Unread{}) << file;
  }
}

TEST_F(WatchedTree, NobodyOpenedThem) {
  ParamReads reads;
  reads.Watch(spec_, root_);
  ASSERT_TRUE(RunCommand({"/bin/ls", "-l", root_ + "/input/config"}, {})->ok());
  EXPECT_EQ(Find(reads), (Unread{{"lr", "batch-size"}, false}));
  ASSERT_TRUE(ReplaceFile(ParamsDir(root_) + "/read", "python\nname lr\n").ok());
  EXPECT_EQ(Find(reads), (Unread{{"batch-size"}, false}));
}

TEST_F(WatchedTree, NothingIsSaidOfARunThatWasNotWatched) {
  ParamReads reads;  // as an agent that took over from a dead one
  EXPECT_EQ(Find(reads), Unread{});
}

TEST_F(WatchedTree, ALinkInTheNotesPlaceLeadsNowhere) {
  ParamReads reads;
  reads.Watch(spec_, root_);
  ASSERT_TRUE(RunCommand({"/bin/ln", "-s", "/etc/passwd", ParamsDir(root_) + "/read"}, {})->ok());
  EXPECT_EQ(Find(reads), Unread{});
}

}  // namespace
}  // namespace athanor
