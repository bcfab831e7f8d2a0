#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "door/mlflow/mlflow.h"
#include "door/mlflow/validate.h"
#include "door/mlflow/wire.h"

namespace athanor {
namespace {

Request Post(std::string body, std::string type = "application/json; charset=utf-8") {
  Request request;
  request.method = "POST";
  request.headers.Add("Content-Type", std::move(type));
  request.body = std::move(body);
  return request;
}

TEST(MlflowFields, TakesNumbersAsNumbersOrTexts) {
  const auto fields = Fields::Of(Post(R"({"a": 7, "b": "8", "c": "x", "d": 9223372036854775808})"));
  ASSERT_TRUE(fields);
  EXPECT_EQ(**fields->Int("a"), 7);
  EXPECT_EQ(**fields->Int("b"), 8);
  EXPECT_FALSE(fields->Int("c"));
  EXPECT_FALSE(fields->Int("d"));
  EXPECT_FALSE(fields->Int("none")->has_value());
}

TEST(MlflowFields, ReadsADocumentThatWasSentAsAString) {
  const auto fields = Fields::Of(Post(R"("{\"name\": \"x\"}")"));
  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields->Needed("name"), "x");
}

TEST(MlflowFields, ReadsRepeatedKeysOfAQuery) {
  Request request;
  request.method = "GET";
  request.query = {{"run_ids", "a"}, {"run_ids", "b"}, {"x", "1"}};
  const auto fields = Fields::Of(request);
  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields->Texts("run_ids"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*fields->Texts("x"), std::vector<std::string>{"1"});
}

TEST(MlflowFields, RefusesBodiesOfAnotherKind) {
  EXPECT_FALSE(Fields::Of(Post("{}", "text/plain")));
  EXPECT_FALSE(Fields::Of(Post("[]")));
  EXPECT_FALSE(Fields::Of(Post("{")));
  EXPECT_TRUE(Fields::Of(Post("")));
}

TEST(MlflowFields, KnowsTheNumbersThatJsonLacks) {
  EXPECT_TRUE(std::isnan(*DoubleOf("NaN", "v")));
  EXPECT_EQ(*DoubleOf("-Infinity", "v"), -INFINITY);
  EXPECT_EQ(*DoubleOf("1e3", "v"), 1000);
  const auto wrong = DoubleOf("abc", "v");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("Invalid value \"abc\" for parameter 'v' supplied"),
            std::string::npos);
  EXPECT_FALSE(DoubleOf(true, "v"));
}

TEST(MlflowFields, APageTokenLeadsToWhereItWasGiven) {
  Json body = {{"page_token", PageToken(42)}, {"max_results", 5}};
  const auto page = ReadPage(Fields(body), 10, 100);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->offset, 42u);
  EXPECT_EQ(page->limit, 5u);
  EXPECT_FALSE(ReadPage(Fields(Json{{"page_token", "x"}}), 10, 100));
  EXPECT_FALSE(ReadPage(Fields(Json{{"max_results", 101}}), 10, 100));
  EXPECT_FALSE(ReadPage(Fields(Json{{"max_results", 0}}), 10, 100));
}

TEST(MlflowErrors, HaveMlflowsNamesAndStatuses) {
  const auto status = [](const tl::unexpected<Error>& error) {
    return MlflowError(error.value()).status;
  };
  EXPECT_EQ(status(InvalidParameter("x")), 400);
  EXPECT_EQ(status(MlflowFail("RESOURCE_DOES_NOT_EXIST", "x")), 404);
  EXPECT_EQ(status(MlflowFail("NOT_IMPLEMENTED", "x")), 501);
  // A name that is taken is the caller's mistake: a 5xx would be tried again for minutes.
  EXPECT_EQ(status(Fail(ErrorCode::kConflict, "x")), 400);
  EXPECT_EQ(status(Fail(ErrorCode::kNotFound, "x")), 404);
}

TEST(MlflowNames, AreCheckedAsMlflowDoes) {
  for (const char* good : {"loss", "val/loss", "a b-c.d_e:f", "\xC3\xA9t\xC3\xA9"}) {
    EXPECT_TRUE(CheckMlflowKey(good, "key").ok()) << good;
  }
  for (const char* bad : {"", "/a", "a//b", "a/../b", "..", ".", "a\n", "a;b", "a/"}) {
    EXPECT_FALSE(CheckMlflowKey(bad, "key").ok()) << bad;
  }
  EXPECT_TRUE(CheckMlflowKey(std::string(250, 'a'), "key").ok());
  EXPECT_FALSE(CheckMlflowKey(std::string(251, 'a'), "key").ok());
  EXPECT_EQ(CutTo("a\xC3\xA9"
                  "bc",
                  2),
            "a\xC3\xA9");
  EXPECT_FALSE(CheckAlias("latest").ok());
  EXPECT_FALSE(CheckAlias("v12").ok());
  EXPECT_TRUE(CheckAlias("v12b").ok());
}

TEST(MlflowPaths, LeadNowhereElseHoweverTheyAreEscaped) {
  for (const char* good : {"a", "0/run/artifacts/model/MLmodel", "a b/c+d", "100%", "%41", "a;b/c",
                           "a\\b", "a:b", ".hidden"}) {
    EXPECT_TRUE(CheckArtifactPath(good).ok()) << good;
  }
  for (const char* bad :
       {"", "/a", "..", "a/../b", "%2e%2e/a", "a/%2e%2e", "%252e%252e%252fa", "%2Fetc", "a\\..\\b",
        "C:/x", "C:\\x", "\\\\host\\x", "a%00b", "a//b", "./a", "..;/a", "a/..;x", "%2e%2e;/a"}) {
    EXPECT_FALSE(CheckArtifactPath(bad).ok()) << bad;
  }
}

TEST(MlflowPermissions, NameEachRouteOnce) {
  std::set<std::string> names;
  for (const auto& [name, need] : MlflowPermissions()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_NE(need, Access::kNobody);
  }
  EXPECT_GT(names.size(), 100u);
}

}  // namespace
}  // namespace athanor
