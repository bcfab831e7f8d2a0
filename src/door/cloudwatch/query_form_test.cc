#include "door/cloudwatch/query_form.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "door/aws/xml.h"
#include "door/cloudwatch/members.h"

namespace athanor {
namespace {

TEST(QueryForm, BecomesWhatTheJsonProtocolWouldSend) {
  const auto object = ObjectFromForm({{"Action", "GetMetricStatistics"},
                                      {"Version", "2010-08-01"},
                                      {"Namespace", "n"},
                                      {"Dimensions.member.2.Name", "B"},
                                      {"Dimensions.member.1.Name", "A"},
                                      {"Dimensions.member.1.Value", "a"},
                                      {"Statistics.member.1", "Sum"},
                                      {"Deep.Metric.Name", "m"}});
  ASSERT_TRUE(object) << object.error().what;
  EXPECT_EQ(DumpJson(*object),
            R"({"Deep":{"Metric":{"Name":"m"}},"Dimensions":[{"Name":"A","Value":"a"},)"
            R"({"Name":"B"}],"Namespace":"n","Statistics":["Sum"]})");
}

TEST(QueryForm, RefusesWhatIsTwoThingsAtOnceOrTooDeep) {
  using Form = std::vector<std::pair<std::string, std::string>>;
  for (const Form& form :
       {Form{{"A", "1"}, {"A.B", "2"}}, Form{{"A.B", "2"}, {"A", "1"}},
        Form{{"A", "1"}, {"A", "2"}}, Form{{"A.member.1", "x"}, {"A.B", "y"}},
        Form{{"A.member.x", "1"}}, Form{{"A.member", "1"}}, Form{{"A.member.999999999", "1"}},
        Form{{"A..B", "1"}}, Form{{"", "1"}}, Form{{"a.a.a.a.a.a.a.a.a.a.a.a.a", "1"}}}) {
    EXPECT_FALSE(ObjectFromForm(form)) << form.front().first;
  }
}

TEST(QueryForm, TimesAreSecondsInJsonAndIsoInXml) {
  const Json answer = {{"Timestamp", 1'700'000'000'000},
                       {"Timestamps", {1'700'000'000'500}},
                       {"Sum", 0.1},
                       {"Label", "a<b"}};
  EXPECT_EQ(MetricsJson(answer),
            R"({"Timestamp":1700000000,"Timestamps":[1700000000.5],"Sum":0.1,"Label":"a<b"})");
  EXPECT_EQ(MetricsXml(answer),
            "<Timestamp>2023-11-14T22:13:20.000Z</Timestamp><Timestamps><member>"
            "2023-11-14T22:13:20.500Z</member></Timestamps><Sum>0.1</Sum><Label>a&lt;b</Label>");
}

TEST(IsoTime, TakesTheFormsThatClientsSend) {
  const int64_t ms = 1'700'000'000'000;
  EXPECT_EQ(ParseIsoTime("2023-11-14T22:13:20Z"), ms);
  EXPECT_EQ(ParseIsoTime("2023-11-14T22:13:20"), ms);
  EXPECT_EQ(ParseIsoTime("2023-11-14T22:13:20.25Z"), ms + 250);
  EXPECT_EQ(ParseIsoTime("2023-11-14T22:13:20.123456+00:00"), ms + 123);
  EXPECT_EQ(ParseIsoTime("2023-11-15T00:13:20+02:00"), ms);
  EXPECT_EQ(ParseIsoTime("2023-11-14T18:13:20-0400"), ms);
  EXPECT_EQ(ParseIsoTime("1970-01-02"), 86'400'000);
  for (const char* text :
       {"", "2023", "2023-13-01", "2023-02-30", "2023-11-14T", "2023-11-14T25:00",
        "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zx", "14/11/2023"}) {
    EXPECT_FALSE(ParseIsoTime(text)) << text;
  }
}

TEST(Members, KeepsTheFirstFaultInAwssWords) {
  const Json body = {{"limit", 51}, {"name", 7}, {"flag", "true"}, {"number", "12"}};
  Members members(body, "InvalidParameterException");
  EXPECT_TRUE(members.Flag("flag", false));
  EXPECT_EQ(members.Number("number", 0, 20), 12);
  EXPECT_FALSE(members.fault());
  members.Number("limit", 1, 50);
  members.Text("name");
  ASSERT_TRUE(members.fault());
  EXPECT_EQ(members.fault()->code, "InvalidParameterException");
  EXPECT_EQ(members.fault()->message,
            "1 validation error detected: Value '51' at 'limit' failed to satisfy constraint: "
            "Member must have value less than or equal to 50");
}

TEST(Members, AWrongTypeIsASerializationException) {
  const Json body = {{"name", 7}};
  Members members(body, "InvalidParameterException");
  members.Text("name");
  ASSERT_TRUE(members.fault());
  EXPECT_EQ(members.fault()->code, "SerializationException");
  const Json list = Json::array();
  EXPECT_TRUE(Members(list, "x").fault());
}

}  // namespace
}  // namespace athanor
