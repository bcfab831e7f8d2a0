#include "door/cloudwatch/filter_pattern.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

bool Matches(std::string_view pattern, std::string_view message) {
  const auto parsed = FilterPattern::Parse(pattern);
  EXPECT_TRUE(parsed) << pattern << ": " << (parsed ? "" : parsed.error().what);
  return parsed && parsed->Matches(message);
}

TEST(FilterPattern, AnEmptyOneMatchesAll) {
  EXPECT_TRUE(Matches("", "anything"));
  EXPECT_TRUE(Matches(" \t ", ""));
}

TEST(FilterPattern, WantsEveryTermInAnyOrderAndMindsTheCase) {
  EXPECT_TRUE(Matches("ERROR disk", "the disk: ERROR 5"));
  EXPECT_FALSE(Matches("ERROR disk", "ERROR 5"));
  EXPECT_FALSE(Matches("error", "ERROR 5"));
  EXPECT_TRUE(Matches("loss_2", "loss_2=0.5"));
}

TEST(FilterPattern, WantsAPhraseAsItStands) {
  EXPECT_TRUE(Matches("\"out of memory\"", "CUDA out of memory."));
  EXPECT_FALSE(Matches("\"out of memory\"", "memory is out of order"));
  EXPECT_TRUE(Matches(R"("say \"hi\"" x)", R"(x: say "hi")"));
  EXPECT_TRUE(Matches("\"loss=0.5\" -\"nan?\"", "loss=0.5"));
}

TEST(FilterPattern, OneTermWithAQuestionMarkIsEnough) {
  EXPECT_TRUE(Matches("?ERROR ?WARN", "WARN: slow"));
  EXPECT_TRUE(Matches("?ERROR ?\"is slow\"", "disk is slow"));
  EXPECT_FALSE(Matches("?ERROR ?WARN", "INFO: fine"));
}

TEST(FilterPattern, BesideOthersATermWithAQuestionMarkDoesNotCount) {
  EXPECT_TRUE(Matches("INFO ?ERROR", "INFO: fine"));
  EXPECT_FALSE(Matches("INFO ?ERROR", "ERROR"));
}

TEST(FilterPattern, LeavesOutWhatHasATermWithAMinus) {
  EXPECT_TRUE(Matches("ERROR -disk", "ERROR in net"));
  EXPECT_FALSE(Matches("ERROR -disk", "ERROR on disk"));
  EXPECT_TRUE(Matches("-DEBUG", "INFO"));
  EXPECT_FALSE(Matches("-DEBUG", "DEBUG x"));
}

TEST(FilterPattern, RefusesWhatItDoesNotDoAndSaysWhatToUse) {
  for (const char* pattern : {"{ $.level = \"ERROR\" }", "[ip, user, ...]", "%AUTH[A-Z]+%"}) {
    const auto parsed = FilterPattern::Parse(pattern);
    ASSERT_FALSE(parsed) << pattern;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
    EXPECT_NE(parsed.error().what.find("--grep"), std::string::npos);
  }
}

TEST(FilterPattern, RefusesWhatIsMalformed) {
  for (const char* pattern : {"loss=0.5", "\"open", "-", "a ?", "\"\"", "\"a\"b", "?-x", "--x"}) {
    EXPECT_FALSE(FilterPattern::Parse(pattern)) << pattern;
  }
  EXPECT_FALSE(FilterPattern::Parse(std::string(1025, 'a')));
}

}  // namespace
}  // namespace athanor
