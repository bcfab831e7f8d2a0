#include "cli/complete.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

using Words = std::vector<std::string>;

CompletedVerb Ath() {
  CompletedVerb ps{
      "ps",
      {{{"--state"}, "STATES", {"queued", "running", "failed"}}, {{"-a", "--all"}, "", {}}},
      {},
      {}};
  CompletedVerb run{"run",
                    {{{"--type"}, "TYPE", {}}, {{"-d", "--detach"}, "", {}}},
                    {{{"file"}, "FILE", {}}},
                    {}};
  CompletedVerb show{"show", {}, {{{"study"}, "STUDY", {}}}, {}};
  CompletedVerb tune{"tune", {}, {{{"file"}, "FILE", {}}}, {show}};
  CompletedVerb metrics{"metrics", {}, {{{"job"}, "JOB", {}}, {{"name"}, "METRIC", {}}}, {}};
  return {"ath", {}, {}, {ps, run, tune, metrics}};
}

TEST(Completions, OfVerbsAndThoseBelowThem) {
  EXPECT_EQ(CompletionsOf(Ath(), {"r"}).words, (Words{"run"}));
  EXPECT_EQ(CompletionsOf(Ath(), {""}).words, (Words{"ps", "run", "tune", "metrics"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"tune", "s"}).words, (Words{"show"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"tune", ""}).kind, "FILE");
  EXPECT_EQ(CompletionsOf(Ath(), {"tune", "show", ""}).kind, "STUDY");
}

TEST(Completions, OfOptionsAndTheirValues) {
  EXPECT_EQ(CompletionsOf(Ath(), {"ps", "--"}).words, (Words{"--state", "--all"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"ps", "--state", "r"}).words, (Words{"running"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"ps", "--state", "failed,q"}).words, (Words{"failed,queued"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"ps", "--state=fa"}).words, (Words{"--state=failed"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"ps", "--state", "=", "fa"}).words, (Words{"failed"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"run", "--type", "ml."}).kind, "TYPE");
}

TEST(Completions, OfArgumentsInTheirOrder) {
  EXPECT_EQ(CompletionsOf(Ath(), {"metrics", ""}).kind, "JOB");
  const auto second = CompletionsOf(Ath(), {"metrics", "done", "lo"});
  EXPECT_EQ(second.kind, "METRIC");
  EXPECT_EQ(second.before, (Words{"done"}));
  EXPECT_EQ(CompletionsOf(Ath(), {"run", "-d", "--", "python", ""}).kind, "FILE");
}

}  // namespace
}  // namespace athanor
