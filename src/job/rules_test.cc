#include "job/rules.h"

#include <gtest/gtest.h>

#include <limits>

namespace athanor {
namespace {

RuleSpec Rule(std::string kind, std::string metric = "loss") {
  RuleSpec spec;
  spec.rule = std::move(kind);
  spec.metric = std::move(metric);
  if (spec.rule == "above" || spec.rule == "below") spec.value = 1;
  return spec;
}

// What is wrong with it; empty when nothing is. Every refusal says all three.
std::string Refusal(const RuleSpec& spec) {
  const Status status = CheckRule(spec);
  if (status.ok()) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(status.error().why.empty());
  EXPECT_FALSE(status.error().hint.empty());
  return status.error().what + "|" + status.error().hint;
}

TEST(RuleCatalogue, EveryKindIsExplainedAndAccepted) {
  for (const RuleRow& row : RuleCatalogue()) {
    EXPECT_EQ(FindRule(row.kind), &row);
    EXPECT_FALSE(row.title.empty());
    EXPECT_FALSE(row.explain.empty());
    EXPECT_EQ(row.advice.back(), '.');
    EXPECT_EQ(Refusal(Rule(std::string(row.kind))), "") << row.kind;
  }
  EXPECT_EQ(FindRule("NaN"), nullptr);
}

TEST(RuleCatalogue, DefaultsAreThoseOfTheTable) {
  EXPECT_EQ(WithRuleDefaults(Rule("nan")).name, "nan");
  EXPECT_EQ(WithRuleDefaults(Rule("nan")).window, 1u);
  EXPECT_EQ(WithRuleDefaults(Rule("plateau")).window, 50u);
  EXPECT_EQ(WithRuleDefaults(Rule("divergence")).value, 1.0);
  EXPECT_EQ(WithRuleDefaults(Rule("no_progress")).after, std::chrono::minutes(30));
  RuleSpec accuracy = Rule("divergence", "acc");
  accuracy.goal = "max";
  accuracy.name = "mine";
  accuracy.window = 3;
  for (const RuleRow& row : RuleCatalogue()) {
    EXPECT_EQ(Refusal(WithRuleDefaults(Rule(std::string(row.kind)))), "") << row.kind;
  }
  EXPECT_EQ(WithRuleDefaults(accuracy).value, 0.5);
  EXPECT_EQ(WithRuleDefaults(accuracy).name, "mine");
  EXPECT_EQ(WithRuleDefaults(accuracy).window, 3u);
}

TEST(CheckRule, SuggestsTheNearestKindAndAction) {
  EXPECT_NE(Refusal(Rule("platou")).find("did you mean 'plateau'?"), std::string::npos);
  EXPECT_NE(Refusal(Rule("zzzzzz")).find("one of nan, inf"), std::string::npos);
  EXPECT_NE(Refusal(Rule("")).find("no kind"), std::string::npos);
  RuleSpec spec = Rule("nan");
  spec.action = "stopp";
  EXPECT_NE(Refusal(spec).find("did you mean 'stop'?"), std::string::npos);
}

TEST(CheckRule, RefusesWhatTheKindWouldIgnore) {
  RuleSpec spec = Rule("nan");
  spec.value = 1;
  EXPECT_NE(Refusal(spec).find("the rule nan takes no value"), std::string::npos);
  spec = Rule("no_progress");
  spec.window = 3;
  EXPECT_NE(Refusal(spec).find("takes no window"), std::string::npos);
  spec = Rule("above");
  spec.goal = "max";
  EXPECT_NE(Refusal(spec).find("takes no goal"), std::string::npos);
  spec = Rule("plateau");
  spec.after = std::chrono::minutes(1);
  EXPECT_NE(Refusal(spec).find("takes no after"), std::string::npos);
}

TEST(CheckRule, RefusesImpossibleNumbers) {
  RuleSpec spec = Rule("above");
  spec.value.reset();
  EXPECT_NE(Refusal(spec), "");
  spec.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(Refusal(spec), "");
  spec.value = -5;
  EXPECT_EQ(Refusal(spec), "") << "a limit may be negative";
  spec = Rule("divergence");
  spec.value = 0;
  EXPECT_NE(Refusal(spec), "");
  spec = Rule("plateau");
  spec.window = kMaxRuleWindow + 1;
  EXPECT_NE(Refusal(spec), "");
  spec = Rule("plateau");
  spec.min_delta = -0.1;
  EXPECT_NE(Refusal(spec), "");
  spec = Rule("plateau");
  spec.goal = "up";
  EXPECT_NE(Refusal(spec), "");
  spec = Rule("no_progress");
  spec.after = std::chrono::milliseconds(10);
  EXPECT_NE(Refusal(spec), "");
  EXPECT_NE(Refusal(Rule("nan", " ")), "");
}

TEST(CheckRule, AWebhookAndItsAddressBelongTogether) {
  RuleSpec spec = Rule("nan");
  spec.action = "webhook";
  EXPECT_NE(Refusal(spec), "");
  spec.url = "ftp://example.org";
  EXPECT_NE(Refusal(spec), "");
  spec.url = "https://example.org/x";
  EXPECT_EQ(Refusal(spec), "");
  spec.action = "stop";
  EXPECT_NE(Refusal(spec), "");
}

TEST(RulesWithoutMetric, NamesWhatWasLoggedInstead) {
  RuleSpec rule = Rule("nan");
  rule.metric = "los";
  using Texts = std::vector<std::string>;
  EXPECT_EQ(RulesWithoutMetric({rule}, {"acc", "loss"}),
            Texts{"rule nan on 'los': no metric of that name was logged; did you mean loss?"});
  EXPECT_EQ(RulesWithoutMetric({rule}, {"a", "b"}),
            Texts{"rule nan on 'los': no metric of that name was logged; there is a, b"});
  EXPECT_EQ(RulesWithoutMetric({rule}, {}), Texts{"rule nan on 'los': no metric was logged"});
  EXPECT_EQ(RulesWithoutMetric({rule}, {"los"}), Texts());
  rule.metric = "val/*";
  EXPECT_EQ(
      RulesWithoutMetric({rule}, {"train/loss"}),
      Texts{"rule nan on 'val/*': no metric that was logged has such a name; there is train/loss"});
  EXPECT_EQ(RulesWithoutMetric({rule}, {"val/loss"}), Texts());
}

TEST(MetricMatches, TreatsOnlyStarsSpecially) {
  EXPECT_TRUE(MetricMatches("loss", "loss"));
  EXPECT_FALSE(MetricMatches("loss", "val_loss"));
  EXPECT_FALSE(MetricMatches("loss", "loss2"));
  EXPECT_TRUE(MetricMatches("*loss", "train/loss"));
  EXPECT_TRUE(MetricMatches("*", ""));
  EXPECT_TRUE(MetricMatches("a*b*c", "aXbbXc"));
  EXPECT_FALSE(MetricMatches("a*b*c", "aXcXb"));
  EXPECT_TRUE(MetricMatches("**x", "x"));
  EXPECT_FALSE(MetricMatches("", "x"));
  EXPECT_FALSE(MetricMatches("a.c", "abc"));
  EXPECT_FALSE(MetricMatches(std::string(200, '*') + "y", std::string(5'000, 'x')));
}

}  // namespace
}  // namespace athanor
