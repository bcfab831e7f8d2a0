#include "run/supervisor/kv_record.h"

#include <gtest/gtest.h>

namespace athanor {
namespace {

std::string Sample() {
  KvWriter writer("kind", 3);
  writer.Text("name", "line one\nline two");
  writer.Number("count", -12);
  writer.Text("empty", "");
  return *std::move(writer).Finish();
}

TEST(KvRecord, GivesBackWhatWasWrittenInOrder) {
  const std::string bytes = Sample();
  const auto entries = ParseKv("kind", 3, bytes);
  ASSERT_TRUE(entries.has_value());
  ASSERT_EQ(3u, entries->size());
  EXPECT_EQ("line one\nline two", entries->at(0).value);
  EXPECT_EQ(-12, *KvNumber(entries->at(1)));
  EXPECT_EQ("", entries->at(2).value);
}

TEST(KvRecord, RefusesEveryTornFile) {
  const std::string bytes = Sample();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ParseKv("kind", 3, bytes.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(ParseKv("kind", 3, bytes + "x").has_value());
  EXPECT_FALSE(ParseKv("kind", 2, bytes).has_value());
  EXPECT_FALSE(ParseKv("other", 3, bytes).has_value());
}

TEST(KvRecord, RefusesANulInAValueAndNamesItsKey) {
  KvWriter writer("kind", 1);
  writer.Text("argv", std::string("a\0b", 3));
  const auto bytes = std::move(writer).Finish();
  ASSERT_FALSE(bytes.has_value());
  EXPECT_NE(std::string::npos, bytes.error().what.find("argv"));
}

TEST(KvRecord, NumbersAreStrict) {
  for (const char* text : {"", " 1", "1 ", "+1", "0x1", "1e3", "9223372036854775808", "--1"}) {
    EXPECT_FALSE(KvNumber({"n", text}).has_value()) << text;
  }
  EXPECT_FALSE(KvNumberIn({"n", "7"}, 0, 6).has_value());
  EXPECT_FALSE(KvFlag({"n", "2"}).has_value());
}

}  // namespace
}  // namespace athanor
