#include "serve/settings.h"

#include <gtest/gtest.h>

#include "base/io/files.h"
#include "base/io/test_dir.h"

namespace athanor {
namespace {

Result<Settings> Read(const std::string& text) {
  TestDir dir;
  const auto path = JoinPath(dir.path(), "settings.yaml");
  EXPECT_TRUE(ReplaceFile(path, text, 0644));
  return ReadSettings(path);
}

TEST(Settings, ReadsEveryKey) {
  const auto read = Read(
      "instances: simulate\npreflight_above: 5.5\nwebhooks: {allow_private: true}\n"
      "rates: {cpu_hour: 0.01, gib_hour: 0.002, gpu_hour: 0.5, currency: EUR}\n");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_TRUE(read->simulate);
  EXPECT_TRUE(read->webhooks_private);
  EXPECT_EQ(read->preflight_above_micros, 5'500'000);
  EXPECT_EQ(read->rates, (OwnRates{10'000, 2'000, 500'000, "EUR"}));
}

TEST(Settings, NamesTheNearestKeyAndWhereItStands) {
  const auto top = Read("instance: real\n");
  ASSERT_FALSE(top);
  EXPECT_NE(top.error().hint.find("instances"), std::string::npos);
  const auto below = Read("rates:\n  cpu_hours: 1\n");
  ASSERT_FALSE(below);
  EXPECT_NE(below.error().what.find("rates.cpu_hours"), std::string::npos);
  EXPECT_NE(below.error().hint.find("cpu_hour"), std::string::npos);
  EXPECT_NE(below.error().where.find(":2:"), std::string::npos);
  EXPECT_FALSE(Read("rates: 5\n"));
}

TEST(Settings, PageHasEveryKey) {
  for (const char* key : {"instances", "preflight_above", "rates.cpu_hour", "rates.gib_hour",
                          "rates.gpu_hour", "rates.currency", "webhooks.allow_private"}) {
    EXPECT_NE(SettingsPage().find("`" + std::string(key) + "`"), std::string::npos) << key;
  }
}

}  // namespace
}  // namespace athanor
