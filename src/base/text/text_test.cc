#include "base/text/text.h"

#include <gtest/gtest.h>

#include <string>

namespace athanor {
namespace {

using std::chrono::milliseconds;

TEST(Split, KeepsEmptyParts) {
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string>{""}));
  EXPECT_EQ(Split(",", ','), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(Join({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(Join({}, ","), "");
}

TEST(Text, SmallParts) {
  EXPECT_EQ(Trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(Trim("  "), "");
  EXPECT_TRUE(StartsWith("abc", "ab"));
  EXPECT_FALSE(StartsWith("a", "ab"));
  EXPECT_TRUE(EndsWith("abc", "bc"));
  EXPECT_FALSE(EndsWith("c", "bc"));
  EXPECT_EQ(ToUpper("aÜz1"), "AÜZ1");
  EXPECT_EQ(ToLower("AZ9"), "az9");
  EXPECT_EQ(ReplaceAll("aXbXX", "X", "--"), "a--b----");
  EXPECT_EQ(ReplaceAll("aaa", "aa", "a"), "aa") << "one pass, left to right";
  EXPECT_EQ(ReplaceAll("abc", "", "x"), "abc");
}

TEST(ParseDuration, ReadsUnitsAndSums) {
  EXPECT_EQ(ParseDuration("90s"), milliseconds(90'000));
  EXPECT_EQ(ParseDuration("10m"), milliseconds(600'000));
  EXPECT_EQ(ParseDuration("8h"), milliseconds(28'800'000));
  EXPECT_EQ(ParseDuration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration("250ms"), milliseconds(250));
  EXPECT_EQ(ParseDuration("2d"), milliseconds(172'800'000));
  EXPECT_EQ(ParseDuration("1.5h"), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration(" 30 "), milliseconds(30'000));
  EXPECT_EQ(ParseDuration("0"), milliseconds(0));
}

TEST(ParseDuration, RefusesTheRest) {
  for (const char* bad : {"", " ", "h", "-1s", "1x", "1h30", "30m1h", "1h1h", "1e3s", "1 h", "..s",
                          "99999999999999999999d"}) {
    const auto parsed = ParseDuration(bad);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(parsed.error().hint.empty());
  }
}

TEST(ParseBytes, TellsThousandsFromPowersOfTwo) {
  EXPECT_EQ(ParseBytes("512"), 512u);
  EXPECT_EQ(ParseBytes("64KB"), 64'000u);
  EXPECT_EQ(ParseBytes("64KiB"), 65'536u);
  EXPECT_EQ(ParseBytes("2G"), uint64_t{2} << 30);
  EXPECT_EQ(ParseBytes("2Gi"), uint64_t{2} << 30);
  EXPECT_EQ(ParseBytes("1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(ParseBytes("10 mb"), 10'000'000u);
  EXPECT_EQ(ParseBytes("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", "x", "-1", "1X", "1KBs", "18446744073709551616", "99999P", "1 2"}) {
    EXPECT_FALSE(ParseBytes(bad)) << bad;
  }
}

TEST(Human, SizesAndDurations) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1024), "1 KiB");
  EXPECT_EQ(HumanBytes(1'234'567), "1.2 MiB");
  EXPECT_EQ(HumanBytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(HumanBytes(300'000'000), "286 MiB");
  EXPECT_EQ(HumanBytes(24ull << 30), "24 GiB");
  EXPECT_EQ(HumanBytes(UINT64_MAX), "16 EiB");
  EXPECT_EQ(HumanDuration(milliseconds(320)), "320 ms");
  EXPECT_EQ(HumanDuration(milliseconds(4'290)), "4.2 s");
  EXPECT_EQ(HumanDuration(milliseconds(5'000)), "5 s");
  EXPECT_EQ(HumanDuration(milliseconds(59'999)), "59 s");
  EXPECT_EQ(HumanDuration(milliseconds(62'000)), "1 m 02 s");
  EXPECT_EQ(HumanDuration(milliseconds(120'000)), "2 m");
  EXPECT_EQ(HumanDuration(milliseconds(3'723'000)), "1 h 02 m");
  EXPECT_EQ(HumanDuration(milliseconds(48 * 3'600'000)), "2 d");
  EXPECT_EQ(HumanDuration(milliseconds(53 * 3'600'000)), "2 d 5 h");
  EXPECT_EQ(HumanDuration(milliseconds(-41'000)), "-41 s");
}

TEST(Nearest, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> keys = {"resources", "params", "source", "name"};
  EXPECT_EQ(Nearest("resorces", keys), "resources");
  EXPECT_EQ(Nearest("parmas", keys), "params");
  EXPECT_EQ(Nearest("NAME", keys), "name");
  EXPECT_EQ(Nearest("nmae", keys), "name");
  EXPECT_EQ(Nearest("zzz", keys), std::nullopt);
  EXPECT_EQ(Nearest("", keys), std::nullopt);
  EXPECT_EQ(Nearest("x", {"y"}), std::nullopt);
  EXPECT_EQ(Nearest(std::string(1 << 20, 'a'), keys), std::nullopt);
}

TEST(Nearest, SuggestsTheOnlyKeyOfWhichTheWordIsAPart) {
  const std::vector<std::string> keys = {"max_trials", "no_improvement", "max_failures"};
  EXPECT_EQ(Nearest("trials", keys), "max_trials");
  EXPECT_EQ(Nearest("Improvement", keys), "no_improvement");
  EXPECT_EQ(Nearest("trial_count", keys), std::nullopt);
  EXPECT_EQ(Nearest("maxi", {"maxi_rows", "maxi_columns"}), std::nullopt);
}

TEST(ShellQuote, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(ShellQuote("train.py"), "train.py");
  EXPECT_EQ(ShellQuote("--lr=0.1"), "--lr=0.1");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote("$(rm x)"), "'$(rm x)'");
}

TEST(Printable, TakesThePowerOverATerminalAway) {
  EXPECT_EQ(Printable("plain ü 日本"), "plain ü 日本");
  EXPECT_EQ(Printable("a\x1b[2J\n"), "a\\x1b[2J\\x0a");
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b") << "the one-character form of ESC [";
  EXPECT_EQ(Printable("a\xe2\x80\xae"
                      "b"),
            "a\\xe2\\x80\\xaeb")
      << "right-to-left override";
}

TEST(IsUtf8, FollowsTheStandardsTable) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("ü€😀\xf4\x8f\xbf\xbf"));
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xf8\x88\x80\x80\x80", "\xe2\x82", "a\xc3"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
}

TEST(Base64, MatchesTheRfcAndRefusesSecondSpellings) {
  const std::pair<const char*, const char*> pairs[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : pairs) {
    EXPECT_EQ(Base64(plain), encoded);
    EXPECT_EQ(FromBase64(encoded), plain);
  }
  EXPECT_EQ(FromBase64(Base64(std::string("\0\xff\x80", 3))), std::string("\0\xff\x80", 3));
  for (const char* bad : {"Zg", "Zg=", "Zh==", "Z===", "====", "Zm9v\n", "Zm-_", "=Zg="}) {
    EXPECT_EQ(FromBase64(bad), std::nullopt) << bad;
  }
}

TEST(Url, EncodesAllButUnreservedAndDecodesOnce) {
  EXPECT_EQ(UrlEncode("a/b c~ü"), "a%2Fb%20c~%C3%BC");
  EXPECT_EQ(UrlDecode("a%2Fb%20c"), "a/b c");
  EXPECT_EQ(UrlDecode("%252e"), "%2e");
  EXPECT_EQ(UrlDecode("+"), "+");
  for (const char* bad : {"%", "%2", "%zz", "a%"}) EXPECT_EQ(UrlDecode(bad), std::nullopt);
}

TEST(Hex, IsLowerCase) { EXPECT_EQ(Hex(std::string("\x00\xab\xff", 3)), "00abff"); }

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(DisplayWidth("abc"), 3u);
  EXPECT_EQ(DisplayWidth("ü"), 1u);
  EXPECT_EQ(DisplayWidth("日本"), 4u);
  EXPECT_EQ(DisplayWidth("e\xcc\x81"), 1u) << "e and a combining accent";
  EXPECT_EQ(DisplayWidth("😀"), 2u);
  EXPECT_EQ(DisplayWidth("▁▂█│"), 4u) << "what progress bars are made of";
  EXPECT_EQ(DisplayWidth("\xff"), 1u);
}

}  // namespace
}  // namespace athanor
