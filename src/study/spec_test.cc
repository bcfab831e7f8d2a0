#include "study/spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace athanor {
namespace {

Result<StudySpec> Read(const std::string& text) {
  auto json = ParseJson(text);
  EXPECT_TRUE(json) << text;
  return StudySpecFromJson(*json);
}

constexpr char kWhole[] = R"({"name":"digits","metric":"acc","goal":"maximize","value":"best",
  "space":{"lr":{"type":"float","scale":"log","low":1e-5,"high":1},"opt":["sgd","adam"],"epochs":3},
  "strategy":"tpe","seed":5,"max_trials":20,"parallel":4,"budget":{"money":2.5,"time":"90m"},
  "target":0.9,"no_improvement":7,"converge":true,"max_failures":3,
  "early_stopping":{"rule":"asha","first":2,"last":54,"eta":4,"form":"promotion"},"warm_start":"old",
  "job":{"command":["true"]}})";

TEST(StudySpec, ReadsEverythingAndWritesItBack) {
  const auto spec = Read(kWhole);
  ASSERT_TRUE(spec) << spec.error().what << ": " << spec.error().why;
  EXPECT_TRUE(spec->maximize);
  EXPECT_EQ(spec->budget_micros, 2'500'000);
  EXPECT_EQ(spec->budget_time, std::chrono::minutes(90));
  EXPECT_EQ(spec->early.rule, EarlyStopSpec::Rule::kAsha);
  EXPECT_TRUE(spec->early.promote);
  EXPECT_EQ(spec->warm_start, std::vector<std::string>{"old"});
  const auto again = StudySpecFromJson(ToJson(*spec));
  ASSERT_TRUE(again) << again.error().what;
  EXPECT_EQ(*again, *spec);
}

TEST(StudySpec, NamesTheKeyThatIsWrong) {
  const auto where = [](const std::string& more) {
    const auto spec = Read(R"({"metric":"loss","space":{"x":[1,2]},)" + more + "}");
    return spec ? "" : spec.error().where;
  };
  EXPECT_EQ(where(R"("parallel":0)"), "parallel");
  EXPECT_EQ(where(R"("budget":3)"), "budget");
  EXPECT_EQ(where(R"("budget":{"money":-1})"), "budget.money");
  EXPECT_EQ(where(R"("early_stopping":{"rule":"asha"})"), "early_stopping.last");
  EXPECT_EQ(where(R"("strategy":"gp")"), "strategy");
  EXPECT_EQ(where(R"("trials":3)"), "trials");
  EXPECT_EQ(
      Read(R"({"metric":"l","space":{"a":[1],"b":{"type":"int","low":2,"high":1}}})").error().where,
      "space.b");
  // Keys that a program adds are not suggested.
  EXPECT_EQ(Read(R"({"metric":"l","space":{"a":[1]},"zzz":1})").error().hint.find("origin"),
            std::string::npos);
}

TEST(StudySpec, SaysWhatIsWrongAndWhatWouldBeRight) {
  struct Case {
    const char* text;
    const char* expected;
  };
  constexpr char kSpace[] = R"("space":{"x":{"type":"float","low":0,"high":1}})";
  const Case cases[] = {
      {R"([])", "must be a map"},
      {R"({"space":{"x":[1,2]}})", "which metric"},
      {R"({"metric":"loss"})", "no space"},
      {R"({"metric":"loss","space":{}})", "no parameters"},
      {R"({"metric":"loss","space":{"x":{"type":"float","low":1,"high":0}}})", "empty range"},
      {R"({"metric":"loss","space":{"x":{"type":"float","low":0,"high":1,"scale":"log"}}})",
       "log scale"},
      {R"({"metric":"loss",$,"goal":"up"})", "neither minimize nor maximize"},
      {R"({"metric":"loss",$,"max_trials":0})", "max_trials must be a whole number"},
      {R"({"metric":"loss",$,"max_trials":1.5})", "max_trials must be a whole number"},
      {R"({"metric":"loss",$,"strategy":"gp"})", "gp"},
      {R"({"metric":"loss",$,"budget":{"time":"soon"}})", "no duration"},
      {R"({"metric":"loss",$,"budget":{"money":-1}})", "above 0"},
      {R"({"metric":"loss",$,"early_stopping":"asha"})", "needs `last`"},
      {R"({"metric":"loss",$,"early_stopping":"soon"})", "no rule soon"},
      {R"({"metric":"loss",$,"early_stopping":{"rule":"asha","last":9,"form":"up"}})",
       "no form up"},
      {R"({"metric":"loss",$,"early_stopping":{"rule":"median","form":"promotion"}})",
       "have rungs"},
      {R"({"metric":"loss",$,"max_trial":3})", "unknown key max_trial"},
      {R"({"metric":"loss",$,"target":"low"})", "target must be a number"},
      {R"({"metric":"loss",$,"job":{"comand":["x"]}})", "comand"},
  };
  for (const auto& each : cases) {
    std::string text = each.text;
    if (const auto at = text.find('$'); at != std::string::npos) text.replace(at, 1, kSpace);
    const auto spec = Read(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kInvalid) << text;
    EXPECT_NE((spec.error().what + " " + spec.error().why).find(each.expected), std::string::npos)
        << text << " -> " << spec.error().what << ": " << spec.error().why;
  }
}

TEST(StudySpec, ATrialsJobHasItsParametersOverTheJobsOwn) {
  auto spec = Read(kWhole);
  ASSERT_TRUE(spec);
  spec->job.params = {{"lr", "0.1", Param::Kind::kNumber}, {"batch", "32", Param::Kind::kNumber}};
  const auto job = TrialJob(*spec, Json{{"lr", 0.5}, {"opt", "sgd"}, {"bias", true}}, 7);
  ASSERT_EQ(job.params.size(), 4u);
  EXPECT_EQ(job.params[0].value, "0.5");
  EXPECT_EQ(job.params[1].value, "32");
  EXPECT_EQ(job.params[2].kind, Param::Kind::kString);
  EXPECT_EQ(job.params[3].kind, Param::Kind::kBool);
  EXPECT_EQ(job.name, "digits-7");
  EXPECT_EQ(job.tags.at("athanor.trial"), "7");
}

TEST(StudySpec, OnlyLimitsCanBeChanged) {
  auto spec = Read(kWhole);
  ASSERT_TRUE(spec);
  EXPECT_TRUE(ChangeStudySpec(*spec, Json{{"max_trials", 40}, {"budget", {{"time", "3h"}}}}).ok());
  EXPECT_EQ(spec->max_trials, 40);
  EXPECT_EQ(spec->budget_micros, 2'500'000);
  EXPECT_FALSE(ChangeStudySpec(*spec, Json{{"metric", "loss"}}).ok());
  EXPECT_EQ(spec->metric, "acc");
}

}  // namespace
}  // namespace athanor
