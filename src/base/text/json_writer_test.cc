#include "base/text/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/text/json.h"

namespace athanor {
namespace {

TEST(JsonWriter, WritesWhatTheParserReads) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  json.Text("a", "q\"b\\c\n\x01 \xC3\xA9");
  json.Key("list");
  json.BeginArray();
  json.Int(std::numeric_limits<int64_t>::min());
  json.Double(0.1);
  json.Double(3);
  json.Bool(true);
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.Double("nan", std::numeric_limits<double>::quiet_NaN());
  json.Double("low", -std::numeric_limits<double>::infinity());
  json.EndObject();
  const auto parsed = ParseJson(out);
  ASSERT_TRUE(parsed) << out;
  EXPECT_EQ((*parsed)["a"], "q\"b\\c\n\x01 \xC3\xA9");
  EXPECT_EQ((*parsed)["list"][0], std::numeric_limits<int64_t>::min());
  EXPECT_EQ((*parsed)["list"][1], 0.1);
  EXPECT_TRUE((*parsed)["list"][2].is_number_float()) << out;
  EXPECT_EQ((*parsed)["list"].size(), 5u);
  EXPECT_EQ((*parsed)["nan"], "NaN");
  EXPECT_EQ((*parsed)["low"], "-Infinity");
}

// Planted bug: a character missed when eight are checked together.
TEST(JsonWriter, EscapesEveryCharacterAtEveryPlace) {
  for (int c = 1; c < 0x80; ++c) {
    for (size_t at = 0; at < 20; ++at) {
      std::string text(20, 'x');
      text[at] = static_cast<char>(c);
      std::string out;
      AppendJsonText(out, text);
      const auto parsed = ParseJson("[" + out + "]");
      ASSERT_TRUE(parsed) << c << " at " << at;
      ASSERT_EQ((*parsed)[0], text) << c << " at " << at;
    }
  }
}

TEST(JsonWriter, ReplacesBytesThatAreNotUtf8) {
  std::string out;
  AppendJsonText(out, "a\xFFz\xE2\x82");
  const auto parsed = ParseJson("[" + out + "]");
  ASSERT_TRUE(parsed) << out;
  EXPECT_EQ((*parsed)[0], "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace athanor
