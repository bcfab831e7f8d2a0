#include "track/filter.h"

#include <gtest/gtest.h>

#include "base/ids.h"

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
  EXPECT_EQ(WhyNot("metrics.a > 1 or metrics.b > 2"),
            "Invalid clause(s) in filter string: 'or'");
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
}  // namespace athanor
