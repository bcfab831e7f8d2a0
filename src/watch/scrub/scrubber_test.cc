#include "watch/scrub/scrubber.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/text/text.h"
#include "watch/scrub/encodings.h"

namespace athanor {
namespace {

std::shared_ptr<const SecretPatterns> Patterns(const std::vector<SecretValue>& secrets) {
  auto made = SecretPatterns::Make(secrets);
  EXPECT_TRUE(made);
  return *made;
}

std::string Whole(const std::vector<SecretValue>& secrets, std::string_view text) {
  Scrubber scrubber(Patterns(secrets));
  std::string out(scrubber.Feed(text));
  return out.append(scrubber.Flush());
}

const std::vector<SecretValue> kOne = {{"DB_PASS", "s3cr3t/p+ss w"}};

TEST(Scrubber, ReplacesTheValueByItsName) {
  EXPECT_EQ(Whole(kOne, "pass=s3cr3t/p+ss w!"), "pass=***DB_PASS***!");
  EXPECT_EQ(Whole(kOne, "s3cr3t/p+ss ws3cr3t/p+ss w"), "***DB_PASS******DB_PASS***");
  EXPECT_EQ(Whole(kOne, "s3cr3t/p+ss"), "s3cr3t/p+ss");
}

TEST(Scrubber, FindsTheValueOverTwoWrites) {
  Scrubber scrubber(Patterns(kOne));
  std::string out(scrubber.Feed("a s3cr3t"));
  EXPECT_EQ(out, "a ") << "an end that may be the secret's begin waits";
  out += scrubber.Feed("/p+ss w b");
  EXPECT_EQ(out, "a ***DB_PASS*** b");
  EXPECT_EQ(scrubber.held(), 0u) << "what cannot be a secret is shown at once";
  EXPECT_EQ(scrubber.replaced(), 1u);
}

TEST(Scrubber, FindsBase64AtEveryAlignment) {
  for (const std::string before : {"", "x", "xy", "user:", "q:"}) {
    for (const std::string after : {"", "z", "zz", "zzz@"}) {
      const std::string value = "k\xfb\xef\xff~?abc";
      const std::string coded = Base64(before + value + after);
      std::string url = coded;
      std::replace(url.begin(), url.end(), '+', '-');
      std::replace(url.begin(), url.end(), '/', '_');
      for (const std::string& text : {coded, url, url.substr(0, url.find('='))}) {
        const std::string out = Whole({{"KEY", value}}, "Basic " + text + "\n");
        EXPECT_NE(out.find("***KEY***"), std::string::npos)
            << before << "|" << after << ": " << out;
        // At most the digits shared with the neighbours are left.
        EXPECT_LE(out.size(), 6 + 9 + 1 + (before.size() + after.size()) * 4 / 3 + 8) << out;
      }
    }
  }
}

TEST(Scrubber, FindsUrlAndJsonForms) {
  EXPECT_EQ(Whole(kOne, "?p=s3cr3t%2Fp%2Bss%20w&"), "?p=***DB_PASS***&");
  EXPECT_EQ(Whole(kOne, "?p=s3cr3t%2fp%2bss%20w&"), "?p=***DB_PASS***&");
  EXPECT_EQ(Whole(kOne, "?p=s3cr3t/p%2Bss%20w&"), "?p=***DB_PASS***&");
  EXPECT_EQ(Whole(kOne, "?p=s3cr3t%2Fp%2Bss+w&"), "?p=***DB_PASS***&");
  EXPECT_EQ(Whole({{"J", "line1\n\"two\""}}, R"({"a":"line1\n\"two\""})"), R"({"a":"***J***"})");
}

TEST(Scrubber, IgnoresWhiteSpaceAroundAValueThatCameFromAFile) {
  EXPECT_EQ(Whole({{"F", "  token-123\n"}}, "is token-123."), "is ***F***.");
}

TEST(Scrubber, OverlappingFindsLeaveNothingOfEither) {
  EXPECT_EQ(Whole({{"A", "abcdefgh"}, {"B", "fghijklm"}}, "-abcdefghijklm-"), "-***A***-");
  EXPECT_EQ(Whole({{"A", "abcabcabc"}}, "-abcabcabcabc-"), "-***A***-");
  EXPECT_EQ(Whole({{"S", "secret"}, {"L", "secret-longer"}}, "secret-longer secret-long"),
            "***L*** ***S***-long");
}

TEST(Scrubber, AMarkerNeverShowsASecret) {
  EXPECT_EQ(Whole({{"MY_PASSWORD", "PASSWORD"}}, "PASSWORD"), "***");
}

TEST(Scrubber, RefusesShortValuesWithoutShowingThem) {
  const auto made = SecretPatterns::Make({{"PIN", "98765"}});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
  EXPECT_NE(made.error().what.find("PIN"), std::string::npos);
  for (const std::string& text : {made.error().what, made.error().why, made.error().hint}) {
    EXPECT_EQ(text.find("98765"), std::string::npos);
  }
}

TEST(Scrubber, WithoutSecretsTheBytesAreNotEvenCopied) {
  Scrubber scrubber(Patterns({}));
  const std::string text = "anything";
  EXPECT_EQ(scrubber.Feed(text).data(), text.data());
  EXPECT_TRUE(scrubber.Flush().empty());
  Scrubber with(Patterns(kOne));
  EXPECT_EQ(with.Feed(text).data(), text.data()) << "nor with some, when nothing is found";
}

// The promise, done slowly: cover every occurrence of every form, then replace each run.
std::string Naive(const std::vector<SecretValue>& secrets, const std::string& text) {
  std::vector<size_t> reach(text.size(), 0);  // longest find that begins here
  std::vector<std::string> name(text.size());
  for (const SecretValue& secret : secrets) {
    for (const std::string& form : EncodedForms(Trim(secret.value))) {
      for (size_t at = text.find(form); at != std::string::npos; at = text.find(form, at + 1)) {
        if (form.size() > reach[at]) {
          reach[at] = form.size();
          name[at] = secret.name;
        }
      }
    }
  }
  std::string out;
  size_t covered = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (reach[at] > 0) {
      if (at >= covered) out += "***" + name[at] + "***";
      covered = std::max(covered, at + reach[at]);
    }
    if (at >= covered) out += text[at];
  }
  return out;
}

TEST(Scrubber, NeverLeaksAndKeepsTheRestExactlyHoweverTheStreamIsCut) {
  for (uint32_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    // Few letters make overlaps and false starts common; many bytes exercise the codings.
    const std::string letters = seed % 3 == 0 ? "ab" : seed % 3 == 1 ? "abcdef+/ =%" : "";
    const auto text_of = [&](size_t length) {
      std::string text;
      for (size_t i = 0; i < length; ++i) {
        text += letters.empty() ? static_cast<char>(random() % 256)
                                : letters[random() % letters.size()];
      }
      return text;
    };
    std::vector<SecretValue> secrets;
    for (uint32_t n = 1 + random() % 4; n > 0; --n) {
      secrets.push_back({"N" + std::to_string(n), "a" + text_of(4 + random() % 20) + "b"});
    }
    std::string text;
    for (int i = 0; i < 40; ++i) {
      text += text_of(random() % 30);
      const auto forms = EncodedForms(secrets[random() % secrets.size()].value);
      const std::string& form = forms[random() % forms.size()];
      const uint32_t kind = random() % 4;
      if (kind == 0) text += form;
      if (kind == 1) text += form.substr(0, random() % form.size());
      if (kind == 2)
        text += Base64(text_of(random() % 3) + secrets[0].value + text_of(random() % 3));
    }
    const auto patterns = Patterns(secrets);
    Scrubber scrubber(patterns);
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t length = random() % 4 == 0 ? random() % 200 : random() % 3;
      out += scrubber.Feed(std::string_view(text).substr(at, length));
      ASSERT_LT(scrubber.held(), patterns->longest());
      at += length;
    }
    out += scrubber.Flush();
    ASSERT_EQ(out, Naive(secrets, text));
  }
}

}  // namespace
}  // namespace athanor
