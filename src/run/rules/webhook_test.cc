#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "job/causes.h"
#include "run/rules/webhook.h"

namespace athanor {
namespace {

TEST(Webhook, OnlyHttpsAddressesAreTaken) {
  auto target = ParseWebhook("https://chat.example.org:8443/hook?key=a#part");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->endpoint, "https://chat.example.org:8443");
  EXPECT_EQ(target->target, "/hook?key=a");
  EXPECT_EQ(ParseWebhook("https://h")->target, "/");
  EXPECT_EQ(ParseWebhook("https://h?x=1")->target, "/?x=1");
  for (const char* bad :
       {"", "http://h/", "https://", "https:///x", "https://u:p@h/", "ftp://h", "https://h/a b",
        "https://h/a\r\nHost: x", "https://h\x0b/", "https://h\x7f", "file:///etc/passwd"}) {
    EXPECT_FALSE(ParseWebhook(bad)) << bad;
  }
}

TEST(Webhook, WhatIsNotedOfItCanBeExplained) {
  ASSERT_NE(FindCause("webhook"), nullptr);
  EXPECT_FALSE(FindCause("webhook")->infrastructure);
}

TEST(Webhook, SaysWhoWhatAndWhere) {
  AttemptPlan plan;
  plan.job = JobId::New();
  plan.number = 2;
  plan.spec.name = "night";
  Firing firing;
  firing.rule = "bad";
  firing.kind = "nan";
  firing.metric = "loss";
  firing.step = 7;
  firing.value = "NaN";
  const auto body = ParseJson(WebhookBody(plan, firing));
  ASSERT_TRUE(body);
  EXPECT_EQ((*body)["text"], "night: bad fired on loss at step 7: NaN");
  EXPECT_EQ((*body)["job"], plan.job.ToString());
  EXPECT_EQ((*body)["step"], 7);
  EXPECT_EQ((*body)["attempt"], 2);
}

// What the class says of an address that leads inside, by name or number.
TEST(Webhook, NeverGoesInside) {
  std::mutex mutex;
  std::vector<Error> errors;
  Webhooks::Options options;
  options.failed = [&](const std::string&, const Error& error) {
    std::lock_guard lock(mutex);
    errors.push_back(error);
  };
  Webhooks webhooks(options);
  const std::vector<std::string> urls = {"https://localhost/x",
                                         "https://127.0.0.1:9/x",
                                         "https://[::1]/x",
                                         "https://169.254.169.254/latest",
                                         "https://[::ffff:10.0.0.1]/",
                                         "https://0x7f000001/",
                                         "https://2130706433/",
                                         "https://127.1/"};
  for (const auto& url : urls) webhooks.Post(url, "{}");
  EXPECT_TRUE(webhooks.Finish(Millis(60'000)));
  std::lock_guard lock(mutex);
  ASSERT_EQ(errors.size(), urls.size());
  for (const auto& error : errors) {
    EXPECT_EQ(error.code, ErrorCode::kDenied) << error.what;
    EXPECT_NE(error.hint.find("allow_private"), std::string::npos);
  }
}

TEST(Webhook, TriesThreeTimesAndThenSaysSo) {
  std::mutex mutex;
  std::vector<std::string> hosts;
  Webhooks::Options options;
  options.allow_private = true;
  options.pause = Millis(1);
  options.failed = [&](const std::string& host, const Error& error) {
    std::lock_guard lock(mutex);
    hosts.push_back(host);
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
  };
  Webhooks webhooks(options);
  webhooks.Post("https://127.0.0.1:1/secret-path", "{}");  // nobody listens there
  EXPECT_TRUE(webhooks.Finish(Millis(60'000)));
  std::lock_guard lock(mutex);
  EXPECT_EQ(hosts, std::vector<std::string>{"https://127.0.0.1:1"});
}

}  // namespace
}  // namespace athanor
