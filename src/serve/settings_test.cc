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

TEST(Settings, SaysWhereAgentsOfOtherMachinesAreHeard) {
  EXPECT_EQ(Read("instances: real\n")->agents, AgentsSettings());
  const auto agents = [](const std::string& text) {
    return Read("agents: " + text).value().agents;
  };
  EXPECT_EQ(agents("{listen: \"10.0.0.5:7071\"}"), (AgentsSettings{"10.0.0.5", 7071, "10.0.0.5"}));
  EXPECT_EQ(agents("{listen: 127.0.0.1:0}"), (AgentsSettings{"127.0.0.1", 0, "127.0.0.1"}));
  EXPECT_EQ(agents("{listen: \"[fd00::5]:7071\"}"), (AgentsSettings{"fd00::5", 7071, "[fd00::5]"}));
  EXPECT_EQ(agents("{listen: 0.0.0.0:7071, address: train.example.org}"),
            (AgentsSettings{"0.0.0.0", 7071, "train.example.org"}));
  EXPECT_EQ(agents("{listen: \"[::]:0\", address: \"[fd00::5]:9000\"}"),
            (AgentsSettings{"::", 0, "[fd00::5]:9000"}));
}

// Planted bug: tell agents to call 0.0.0.0.
TEST(Settings, RefusesAnAddressAtWhichNoAgentCanCall) {
  for (const char* text :
       {"{listen: 0.0.0.0:7071}", "{listen: \"[::]:7071\"}", "{address: 10.0.0.5}",
        "{listen: 0.0.0.0:7071, address: 0.0.0.0}", "{listen: 0.0.0.0:7071, address: \"[::]:1\"}",
        "{listen: 7071}", "{listen: localhost:7071}", "{listen: 10.0.0.5}",
        "{listen: \"10.0.0.5:\"}", "{listen: 10.0.0.5:70000}", "{listen: 10.0.0.5:7071x}",
        "{listen: fd00::5:7071}", "{listen: [a, b]}", "{listen: \"\"}",
        "{listen: 0.0.0.0:7071, address: \"a/b\"}",
        "{listen: 0.0.0.0:7071, address: \"https://a\"}",
        "{listen: 0.0.0.0:7071, address: \"a:0\"}", "{lisen: 0.0.0.0:7071}", "7071"}) {
    const auto read = Read("agents: " + std::string(text) + "\n");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().id, "ATH-V0010") << text;
    EXPECT_FALSE(read.error().hint.empty()) << text;
    EXPECT_NE(read.error().where.find("settings.yaml"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace athanor
