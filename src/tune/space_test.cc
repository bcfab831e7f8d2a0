#include "tune/space.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tune/random.h"
#include "tune/strategies.h"

namespace athanor::tune {
namespace {

Result<Space> Parsed(std::string_view text) {
  auto json = ParseJson(text);
  EXPECT_TRUE(json) << text;
  return Space::Parse(*json);
}

TEST(Space, RefusesWhatCannotBeSearchedAndSaysWhy) {
  struct Row {
    const char* space;
    const char* what;
  };
  const Row rows[] = {
      {"[]", "no parameters"},
      {"{}", "no parameters"},
      {"[1]", "must be an object"},
      {R"([{"type":"float","low":0,"high":1}])", "no name"},
      {R"([{"name":"x"}])", "no known type"},
      {R"([{"name":"x","type":"real","low":0,"high":1}])", "no known type"},
      {R"([{"name":"x","type":"float","low":1,"high":0}])", "empty range"},
      {R"([{"name":"x","type":"float","low":0}])", "no high"},
      {R"([{"name":"x","type":"float","low":"0","high":1}])", "not a number"},
      {R"([{"name":"x","type":"float","low":-1.7e308,"high":1.7e308}])", "too wide"},
      {R"([{"name":"x","type":"int","low":0.5,"high":2}])", "not an integer"},
      {R"([{"name":"x","type":"int","low":0,"high":1e300}])", "not an integer"},
      {R"([{"name":"x","type":"float","scale":"log","low":0,"high":1}])", "low > 0"},
      {R"([{"name":"x","type":"float","scale":"log","low":-1,"high":1}])", "low > 0"},
      {R"([{"name":"x","type":"float","scale":"reverse_log","low":0,"high":1}])", "reverse-log"},
      {R"([{"name":"x","type":"float","scale":"cubic","low":0,"high":1}])", "no known scale"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"levels":0}])", "not a count"},
      {R"([{"name":"x","type":"cat","choices":[]}])", "no choices"},
      {R"([{"name":"x","type":"cat","choices":["a","a"]}])", "twice"},
      {R"([{"name":"x","type":"cat","choices":[[1]]}])", "no plain value"},
      {R"([{"name":"x","type":"cat","choices":["a"],"low":0}])", "has a low"},
      {R"([{"name":"x","type":"const"}])", "no plain value"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"hihg":2}])", "unknown key"},
      {R"([{"name":"x","type":"float","low":0,"high":1},{"name":"x","type":"float","low":0,"high":1}])",
       "twice"},
      {R"([{"name":"x","type":"float","low":0,"high":1,"if":"y == 1"}])", "no parameter above"},
      {R"([{"name":"c","type":"cat","choices":["a"]},
           {"name":"x","type":"float","low":0,"high":1,"if":"c == b"}])",
       "never hold"},
      {R"([{"name":"c","type":"cat","choices":["a"]},
           {"name":"x","type":"float","low":0,"high":1,"if":"c"}])",
       "not understood"},
      {R"([{"name":"c","type":"cat","choices":["a"]},
           {"name":"x","type":"float","low":0,"high":1,"if":"c < 3"}])",
       "compares the choices"},
  };
  for (const auto& row : rows) {
    const auto space = Parsed(row.space);
    ASSERT_FALSE(space) << row.space;
    EXPECT_NE(space.error().what.find(row.what), std::string::npos)
        << row.space << " -> " << space.error().what;
    EXPECT_FALSE(space.error().hint.empty()) << row.space;
    EXPECT_EQ(space.error().code, ErrorCode::kInvalid);
  }
}

constexpr const char* kMixed = R"([
  {"name":"opt","type":"cat","choices":["sgd","adam",1,"1",true,null,1.5]},
  {"name":"lr","type":"float","scale":"log","low":1e-5,"high":1},
  {"name":"momentum","type":"float","scale":"reverse_log","low":0,"high":0.9999,"if":"opt == sgd"},
  {"name":"layers","type":"int","low":1,"high":12},
  {"name":"width","type":"int","scale":"log","low":1,"high":1024,"if":"layers >= 3 and opt != adam"},
  {"name":"auto","type":"float","scale":"auto","low":0.001,"high":10},
  {"name":"one","type":"float","low":2,"high":2},
  {"name":"epochs","type":"const","value":30}])";

TEST(Space, DecodesWithinRangesAndComesBack) {
  const auto space = Parsed(kMixed);
  ASSERT_TRUE(space) << space.error().what;
  EXPECT_EQ(space->parameters()[5].scale, Scale::kLog);
  Random random(2, 0, 0);
  for (int i = 0; i < 2000; ++i) {
    const auto values = space->Decode(RandomPoint(*space, random));
    const Json json = space->ToJson(values);
    const auto again = space->FromJson(json, false);
    ASSERT_TRUE(again) << DumpJson(json) << again.error().what;
    EXPECT_EQ(KeyOf(*again), KeyOf(values));
    EXPECT_EQ(json.contains("momentum"), json["opt"] == "sgd");
    EXPECT_EQ(json.contains("width"), json["layers"] >= 3 && json["opt"] != "adam");
    EXPECT_EQ(json["one"], 2.0);
    EXPECT_EQ(json["epochs"], 30);
    // A point is where its assignment is.
    const auto point = space->Encode(values);
    auto snapped = point;
    space->Snap(snapped);
    EXPECT_EQ(snapped, point);
  }
}

TEST(Space, TellsChoicesOfDifferentTypesApart) {
  const auto space = Parsed(kMixed);
  for (const char* opt : {"1", "\"1\"", "true", "null", "1.5"}) {
    auto json =
        *ParseJson(std::string(R"({"lr":0.1,"layers":1,"auto":1,"one":2,"opt":)") + opt + "}");
    const auto values = space->FromJson(json, false);
    ASSERT_TRUE(values) << opt << values.error().what;
    EXPECT_EQ(TextOf(*(*values)[0]), opt);
  }
  auto json = *ParseJson(R"({"lr":0.1,"layers":1.0,"auto":1,"one":2,"opt":1.0})");
  const auto values = space->FromJson(json, false);
  ASSERT_TRUE(values);
  EXPECT_EQ(TextOf(*(*values)[0]), "1");
}

TEST(Space, RefusesTrialsThatDoNotFit) {
  const auto space = Parsed(R"([{"name":"x","type":"float","low":0,"high":1,"default":0.5},
                                {"name":"n","type":"int","low":1,"high":5}])");
  for (const char* bad : {"3", R"({"x":0.5})", R"({"x":2,"n":1})", R"({"x":0.5,"n":1.5})",
                          R"({"x":"a","n":1})", R"({"x":0.5,"n":1,"y":2})"}) {
    EXPECT_FALSE(space->FromJson(*ParseJson(bad), false)) << bad;
  }
  // Made elsewhere: other ranges, other names.
  EXPECT_TRUE(space->FromJson(*ParseJson(R"({"n":7,"y":2})"), true));
}

TEST(Space, CountsItsCells) {
  EXPECT_FALSE(Parsed(kMixed)->cells());
  EXPECT_EQ(*Parsed(R"([{"name":"n","type":"int","low":-2,"high":3},
                        {"name":"c","type":"cat","choices":[1,2]}])")
                 ->cells(),
            12u);
}

}  // namespace
}  // namespace athanor::tune
