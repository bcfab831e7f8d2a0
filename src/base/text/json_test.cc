#include "base/text/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace athanor {
namespace {

TEST(ParseJson, KeepsOrderAndReadsBack) {
  const std::string text =
      R"({"z":1,"a":[true,null,-2,18446744073709551615,0.5,"ü"],"m":{"k":{}}})";
  const auto value = ParseJson(text);
  ASSERT_TRUE(value) << value.error().why;
  EXPECT_EQ(DumpJson(*value), text);
}

TEST(ParseJson, SaysLineAndColumn) {
  const auto value = ParseJson("{\n  \"a\": 1,\n  \"b\": oops\n}");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(value.error().where.substr(0, 2), "3:");
  EXPECT_NE(value.error().what.find("line 3"), std::string::npos);
  EXPECT_FALSE(value.error().why.empty());
}

TEST(ParseJson, RefusesDuplicateKeysInSmallAndLargeObjects) {
  const auto small = ParseJson("{\"a\":1,\n\"a\":2}");
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().where, "2:3");
  EXPECT_NE(small.error().why.find("\"a\""), std::string::npos);

  std::string large = "{";
  for (int i = 0; i < 100; ++i) large += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(ParseJson(large + "\"other\":1}"));
  EXPECT_FALSE(ParseJson(large + "\"k3\":1}"));
  EXPECT_FALSE(ParseJson(large + "\"k97\":1}"));
  EXPECT_FALSE(ParseJson(R"({"a":1,"\u0061":2})")) << "the same key, written differently";
  EXPECT_TRUE(ParseJson(R"([{"a":1},{"a":2}])")) << "two objects may share a key";
  EXPECT_TRUE(ParseJson(R"({"a":{"a":{"a":1}}})"));
}

TEST(ParseJson, LimitsDepthTo64HoweverDeepTheText) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(ParseJson(nested(64)));
  EXPECT_FALSE(ParseJson(nested(65)));
  const auto bomb = ParseJson(std::string(20'000'000, '['));
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().where, "1:65");
}

TEST(ParseJson, ManyKeysTakeLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"key" + std::to_string(i) + "\":0,";
  text += "\"last\":1}";
  // Quadratic work would be 2 * 10^10 comparisons: the test would not end.
  const auto value = ParseJson(text);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->size(), 200'001u);
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("{"), std::string("[1,]"), std::string("{}x"),
        std::string("NaN"), std::string("'a'"), std::string("\"\xff\""), std::string("\"a\0b\"", 5),
        std::string("[1e999]"), std::string("\"\\ud800\""), std::string("// c\n1")}) {
    EXPECT_FALSE(ParseJson(text)) << text;
  }
}

TEST(DumpJson, NamesNonFiniteNumbersAndReplacesBadUtf8) {
  Json value;
  value["nan"] = std::nan("");
  value["list"] = {std::numeric_limits<double>::infinity(), 1.5,
                   -std::numeric_limits<double>::infinity()};
  value["bad"] = "a\xff";
  EXPECT_EQ(
      DumpJson(value),
      "{\"nan\":\"NaN\",\"list\":[\"Infinity\",1.5,\"-Infinity\"],\"bad\":\"a\xEF\xBF\xBD\"}");
  EXPECT_TRUE(value["nan"].is_number_float()) << "the value itself is left alone";
}

TEST(DumpJson, PrettyIsIndentedAndReadsBack) {
  const auto value = ParseJson(R"({"a":[1]})");
  ASSERT_TRUE(value);
  EXPECT_EQ(DumpJsonPretty(*value), "{\n  \"a\": [\n    1\n  ]\n}");
}

}  // namespace
}  // namespace athanor
