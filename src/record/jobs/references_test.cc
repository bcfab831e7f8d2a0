#include <gtest/gtest.h>

#include "base/text/text.h"
#include "record/testing.h"

namespace athanor {
namespace {

class References : public testing::Test {
 protected:
  void SetUp() override {
    database_ = OpenStore(dir_ / "a.db");
    ASSERT_NE(database_, nullptr);
    store_ = std::make_unique<JobStore>(*database_);
  }
  // Ids in base 32: 26 digits, the first at most 7.
  JobId Add(std::string_view id, std::string name, JobState state = JobState::kCompleted) {
    auto record = SampleJob(next_++, std::move(name));
    record.id = JobId::Parse(id).value();
    record.key = std::string(id);
    record.state = state;
    const Status done = store_->Commit(SubmitOf(record));
    EXPECT_TRUE(done.ok()) << done.error().what;
    return record.id;
  }
  ErrorCode CodeOf(std::string_view reference) {
    const auto found = store_->Resolve(reference);
    EXPECT_FALSE(found) << reference;
    return found ? ErrorCode::kBug : found.error().code;
  }

  const ScratchDir dir_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobStore> store_;
  int next_ = 0;
};

constexpr std::string_view kA = "01hf000000aaaaaaaaaaaacafe";
constexpr std::string_view kB = "01hf000000bbbbbbbbbbbbface";
constexpr std::string_view kC = "01hg000000cccccccccccc1ace";

TEST_F(References, AWholeIdResolvesInBothFormsAndAnyCase) {
  const JobId a = Add(kA, "one");
  Add(kB, "two");
  EXPECT_EQ(store_->Resolve(kA).value(), a);
  EXPECT_EQ(store_->Resolve(ToUpper(kA)).value(), a);
  EXPECT_EQ(store_->Resolve(a.value.ToHex()).value(), a);
  EXPECT_EQ(store_->Resolve(ToUpper(a.value.ToHex())).value(), a);
}

TEST_F(References, AUniqueStartOrEndOfAnIdIsEnough) {
  const JobId a = Add(kA, "one");
  Add(kB, "two");
  const JobId c = Add(kC, "three");
  EXPECT_EQ(store_->Resolve("01hg").value(), c);
  EXPECT_EQ(store_->Resolve("01HF000000A").value(), a);
  EXPECT_EQ(store_->Resolve("cafe").value(), a);
  EXPECT_EQ(store_->Resolve("CAFE").value(), a);
  EXPECT_EQ(store_->Resolve("lace").value(), c);  // l reads as 1
}

TEST_F(References, APartThatIsNotUniqueListsTheCandidates) {
  Add(kA, "one");
  Add(kB, "two");
  const auto several = store_->Resolve("01hf");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, ErrorCode::kConflict);
  EXPECT_NE(several.error().why.find(std::string(kA) + " (one)"), std::string::npos);
  EXPECT_NE(several.error().why.find(std::string(kB) + " (two)"), std::string::npos);
  EXPECT_FALSE(several.error().hint.empty());
}

TEST_F(References, LessThanFourDigitsAreNotTakenForAnId) {
  Add(kA, "one");
  EXPECT_EQ(CodeOf("01h"), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf("afe"), ErrorCode::kNotFound);
}

TEST_F(References, ANameMeansItsNewestJob) {
  Add(kA, "train");
  const JobId b = Add(kB, "train");
  EXPECT_EQ(store_->Resolve("train").value(), b);
}

TEST_F(References, ANameIsNeverTakenForTheEndOfAStrangersId) {
  Add(kA, "one");
  const JobId b = Add(kB, "cafe");
  EXPECT_EQ(store_->Resolve("cafe").value(), b);
}

TEST_F(References, LastIsTheOneWithTheNewestId) {
  const JobId a = Add(kA, "x", JobState::kFailed);
  const JobId b = Add(kB, "x", JobState::kFailed);
  const JobId c = Add(kC, "x", JobState::kRunning);
  EXPECT_EQ(store_->Resolve("@last").value(), c);
  EXPECT_EQ(store_->Resolve("@last~0").value(), c);
  EXPECT_EQ(store_->Resolve("@last~1").value(), b);
  EXPECT_EQ(store_->Resolve("@last~2").value(), a);
  EXPECT_EQ(CodeOf("@last~3"), ErrorCode::kNotFound);
  EXPECT_EQ(store_->Resolve("@last-failed").value(), b);
  EXPECT_EQ(store_->Resolve("@last-failed~1").value(), a);
  for (const char* bad : {"@", "@lost", "@last~", "@last~x", "@last~-1", "@last~1x", "@last~~1",
                          "@last~99999999999999999999"}) {
    EXPECT_EQ(CodeOf(bad), ErrorCode::kInvalid) << bad;
  }
}

TEST_F(References, AnEmptyStoreSaysHowToFillIt) {
  const auto missing = store_->Resolve("@last");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().hint, "ath run -- python train.py");
}

TEST_F(References, LastFailedSaysThatNoneFailed) {
  Add(kA, "x", JobState::kCompleted);
  EXPECT_EQ(store_->Resolve("@last-failed").error().why, "no job has failed");
  Add(kB, "x", JobState::kFailed);
  EXPECT_EQ(store_->Resolve("@last-failed~1").error().why, "fewer than 2 jobs have failed");
}

TEST_F(References, AMissLeadsToTheNearestNameAndTheList) {
  Add(kA, "brisk-heron");
  Add(kB, "calm-otter");
  const auto missing = store_->Resolve("brisk-herno");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().what, "no job 'brisk-herno'");
  EXPECT_EQ(missing.error().hint, "did you mean 'brisk-heron'?\nath ps -a");
  EXPECT_EQ(store_->Resolve("something-else").error().hint, "ath ps -a");
}

TEST_F(References, HostileTextIsOnlyText) {
  Add(kA, "one");
  for (const std::string& bad : {std::string("../../etc/passwd"), std::string("' OR 1=1 --"),
                                 std::string("%"), std::string("____"), std::string("\0\0\0\0", 4),
                                 std::string("\x1b[2J"), std::string(70'000, 'a')}) {
    const auto found = store_->Resolve(bad);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(found.error().what.find('\x1b'), std::string::npos);
    EXPECT_LT(found.error().what.size(), 400u);
  }
  EXPECT_EQ(CodeOf(""), ErrorCode::kInvalid);
}

}  // namespace
}  // namespace athanor
