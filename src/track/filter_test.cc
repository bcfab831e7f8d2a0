#include "track/filter.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/ids.h"

#include "track/own_filter.h"

namespace athanor {
namespace {

std::string WhyNot(std::string_view filter, Searched what = Searched::kRuns) {
  const auto parsed = ParseFilter(filter, what);
  return parsed ? "" : parsed.error().what;
}

Clause One(std::string_view filter) {
  const auto parsed = ParseFilter(filter, Searched::kRuns);
  EXPECT_TRUE(parsed) << parsed.error().what;
  EXPECT_EQ(parsed ? parsed->size() : 0, 1u) << filter;
  return parsed && !parsed->empty() ? parsed->front() : Clause{};
}

TEST(Filter, ReadsEveryKindOfIdentifier) {
  EXPECT_EQ(One("metrics.loss < 1").type, FieldType::kMetric);
  EXPECT_EQ(One("metric.`val/loss: a` >= -1e-3").key, "val/loss: a");
  EXPECT_EQ(One("metric.`val/loss: a` >= -1e-3").number, -1e-3);
  EXPECT_EQ(One("params.\"my key\" = 'x'").key, "my key");
  EXPECT_EQ(One("parameter.a.b.c = 'x'").key, "a.b.c");
  EXPECT_EQ(One("tags.mlflow.user ILIKE \"An%\"").key, "mlflow.user");
  EXPECT_EQ(One("status = 'FINISHED'").type, FieldType::kAttribute);
  EXPECT_EQ(One("attributes.`Run Name` LIKE 'a%'").key, "run_name");
  EXPECT_EQ(One("`run name` = 'a'").key, "run_name");
  EXPECT_EQ(One("created > 17").key, "start_time");
  EXPECT_EQ(One("dataset.context = 'train'").type, FieldType::kDataset);
}

TEST(Filter, ReadsListsAndNulls) {
  EXPECT_EQ(One("attributes.run_id IN ('a','b')").list, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(One("attributes.run_id not in ('a')").comparator, Comparator::kNotIn);
  const Ulid id = *Ulid::Parse("01KA5XJQ8Z0000000000000000");
  EXPECT_EQ(One("attributes.run_id != '" + id.ToString() + "'").text, id.ToHex());
  EXPECT_EQ(One("run_id IN ('" + id.ToString() + "', 'x')").list,
            (std::vector<std::string>{id.ToHex(), "x"}));
  EXPECT_EQ(One("params.x IS NULL").comparator, Comparator::kIsNull);
  EXPECT_EQ(One("tags.x is not null").comparator, Comparator::kIsNotNull);
}

TEST(Filter, JoinsClausesByAndInAnyCase) {
  const auto parsed =
      ParseFilter("metrics.a > 1 and params.b = 'and' AND tags.c != 'x'", Searched::kRuns);
  ASSERT_TRUE(parsed) << parsed.error().what;
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ((*parsed)[1].text, "and");
  EXPECT_TRUE(ParseFilter("", Searched::kRuns)->empty());
  EXPECT_TRUE(ParseFilter("  \n", Searched::kRuns)->empty());
}

TEST(Filter, SaysWhatIsWrongInTheWordsOfMlflow) {
  EXPECT_EQ(WhyNot("metrics.a > 1 or metrics.b > 2"), "Invalid clause(s) in filter string: 'or'");
  EXPECT_EQ(WhyNot("params.a = 9"),
            "Expected a quoted string value for parameter (e.g. 'my-value'). Got value 9");
  EXPECT_NE(WhyNot("metrics.a = '9'").find("Expected numeric value type for metric."),
            std::string::npos);
  EXPECT_NE(WhyNot("attribute.nope = 'x'").find("Invalid attribute key 'nope' specified."),
            std::string::npos);
  EXPECT_NE(WhyNot("nope.a = 'x'").find("Invalid entity type 'nope'. Valid values are ["),
            std::string::npos);
  EXPECT_NE(WhyNot("metrics.a LIKE 'x'").find("Invalid comparator 'LIKE' not one of"),
            std::string::npos);
  EXPECT_NE(WhyNot("metrics.a > 1", Searched::kExperiments), "");
  for (const char* bad : {"metrics.a", "metrics.a >", "= 1", "metrics. > 1", "a'", "(a = 'x')",
                          "run_id IN ()", "run_id IN ('a'", "run_id IN (1)", "params.a = `x`",
                          "metrics.a > 1 AND", "metrics.a > 1,", "status = 'a' 'b'"}) {
    EXPECT_NE(WhyNot(bad), "") << bad;
  }
}

TEST(Filter, ReadsOrders) {
  EXPECT_EQ(*ParseOrderBy("metrics.`val loss` DESC", Searched::kRuns),
            (OrderBy{FieldType::kMetric, "val loss", false}));
  EXPECT_EQ(*ParseOrderBy("start_time", Searched::kRuns),
            (OrderBy{FieldType::kAttribute, "start_time", true}));
  EXPECT_FALSE(ParseOrderBy("start_time DOWN", Searched::kRuns));
  EXPECT_FALSE(ParseOrderBy("", Searched::kRuns));
  EXPECT_FALSE(ParseOrderBy("metrics.a ASC DESC", Searched::kRuns));
  EXPECT_FALSE(ParseOrder({"metrics.a", "metrics.a DESC"}, Searched::kRuns));
  EXPECT_TRUE(ParseOrderBy("experiment_id", Searched::kExperiments));
  EXPECT_FALSE(ParseFilter("experiment_id = '1'", Searched::kExperiments));
}

TEST(Filter, LikeKnowsAnyTextAndOneCharacter) {
  EXPECT_TRUE(Like("abc", "a%", false));
  EXPECT_TRUE(Like("abc", "%b%", false));
  EXPECT_TRUE(Like("abcbd", "a%b_", false));
  EXPECT_TRUE(Like("a\xC3\xA9z", "a_z", false));
  EXPECT_FALSE(Like("ABC", "a%", false));
  EXPECT_TRUE(Like("ABC", "a%", true));
  EXPECT_FALSE(Like("abc", "a_", false));
  EXPECT_TRUE(Like("", "%", false));
  // No blow-up: each % makes at most one pass.
  EXPECT_FALSE(Like(std::string(20'000, 'a'), std::string(40, '%') + "b", false));
}

}  // namespace
TEST(OwnFilter, ComparesParametersAsNumbers) {
  const auto clauses = ParseOwnFilter("params.lr > 0.1");
  ASSERT_TRUE(clauses);
  EXPECT_TRUE(Passes(clauses->front(), "0.5"));
  EXPECT_TRUE(Passes(clauses->front(), "1e3"));
  EXPECT_FALSE(Passes(clauses->front(), "0.1"));
  EXPECT_FALSE(Passes(clauses->front(), "adam"));
  EXPECT_FALSE(ParseFilter("params.lr > 0.1", Searched::kRuns))
      << "MLflow's clients know it is refused";
}

TEST(OwnFilter, TakesAnyFormOfANumberWithoutQuotesAndTheTextWithThem) {
  const auto passes = [](std::string_view filter, std::string_view text) {
    const auto clauses = ParseOwnFilter(filter);
    return clauses && std::all_of(clauses->begin(), clauses->end(),
                                  [&](const Clause& clause) { return Passes(clause, text); });
  };
  EXPECT_TRUE(passes("param.lr = 0.001", "1e-3"));
  EXPECT_FALSE(passes("param.lr = '0.001'", "1e-3"));
  EXPECT_TRUE(passes("tag.team == vision", "vision"));
  EXPECT_FALSE(passes("tags.team = vision", "speech"));
}

TEST(OwnFilter, KnowsStatesByTheirShownNames) {
  const auto clauses = ParseOwnFilter("state = failed AND metric.loss < 1");
  ASSERT_TRUE(clauses);
  EXPECT_EQ(clauses->front().key, "status");
  EXPECT_EQ(clauses->front().text, "FAILED");
  EXPECT_EQ(ParseOwnFilter("state IN ('Completed', 'stopped')")->front().list,
            (std::vector<std::string>{"FINISHED", "KILLED"}));
  const auto wrong = ParseOwnFilter("state = faild");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("queued, running, completed, failed and stopped"),
            std::string::npos);
}

TEST(OwnFilter, SaysWhatIsAllowed) {
  for (const char* filter : {"lr > 1", "params.lr", "params.lr ~ 1", "params.lr > x OR a = 1"}) {
    const auto wrong = ParseOwnFilter(filter);
    ASSERT_FALSE(wrong) << filter;
    EXPECT_NE(wrong.error().hint.find("params.NAME"), std::string::npos) << filter;
  }
}

}  // namespace athanor
