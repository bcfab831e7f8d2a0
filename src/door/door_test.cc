#include <gtest/gtest.h>

#include <set>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "door/access.h"
#include "door/hub.h"
#include "door/native/names.h"
#include "door/native/openapi.h"

namespace athanor {
namespace {

TEST(OpenApi, DescribesEveryRouteOfThePermissionTableButTheAgentsAndMlflows) {
  auto document = ParseJson(OpenApiDocument());
  ASSERT_TRUE(document) << document.error().what;
  std::set<std::string> described;
  for (const auto& [path, methods] : (*document)["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      described.insert(operation["operationId"].get<std::string>());
    }
  }
  std::set<std::string> permitted;
  for (const auto& row : Permissions()) {
    const bool mlflow = row.route.find("mlflow.") != std::string_view::npos;
    if (row.need != Access::kAgent && !mlflow) permitted.insert(std::string(row.route));
  }
  EXPECT_EQ(described, permitted);
}

TEST(OpenApi, EveryReferenceResolves) {
  auto document = ParseJson(OpenApiDocument());
  ASSERT_TRUE(document);
  const auto& schemas = (*document)["components"]["schemas"];
  std::string text = OpenApiDocument();
  const std::string prefix = "#/components/schemas/";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    auto name = text.substr(at + prefix.size(), text.find('"', at) - at - prefix.size());
    EXPECT_TRUE(schemas.contains(name)) << name;
  }
}

// Planted bug: sign the attempt only. A host could then report as another one.
TEST(Tokens, AnAgentsTokenIsGoodForOneHostOfOneAttempt) {
  const std::string key = "secret";
  const auto attempt = AttemptId::New();
  const auto first = IngestToken(key, attempt, 0);
  EXPECT_EQ(first.find('.'), std::string::npos) << "as before there were hosts";
  for (const uint32_t host : {0u, 1u, 12u}) {
    const auto agent = ReadIngestToken(key, IngestToken(key, attempt, host));
    ASSERT_TRUE(agent);
    EXPECT_EQ(agent->attempt, attempt);
    EXPECT_EQ(agent->host, host);
  }
  const auto token = IngestToken(key, attempt, 1);
  const auto at = token.find('.') + 1;
  for (const char* other : {"0", "2", "01", "11", "", "x", "4294967297", "-1"}) {
    auto forged = token;
    forged.replace(at, 1, other);
    EXPECT_FALSE(ReadIngestToken(key, forged)) << forged;
  }
  EXPECT_FALSE(ReadIngestToken(key, IngestToken(key, AttemptId::New(), 1) + "x"));
  EXPECT_FALSE(ReadIngestToken("another key", token));
  EXPECT_FALSE(ReadIngestToken(key, RunToken(key, attempt)));
  EXPECT_FALSE(ReadRunToken(key, first));
  EXPECT_EQ(ReadRunToken(key, RunToken(key, attempt)), attempt);
  EXPECT_FALSE(ReadIngestToken(key, ""));
}

TEST(Hub, AListenerMayForgetItselfWhileItIsTold) {
  Hub hub;
  auto job = JobId::New();
  int told = 0;
  Hub::Id id = 0;
  id = hub.Listen(job, [&](JobId, News) {
    ++told;
    hub.Forget(id);
  });
  hub.Tell(job, News::kLog);
  hub.Tell(job, News::kLog);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(hub.listeners(), 0u);
}

TEST(Hub, OnlyStatesOfOtherJobsAreTold) {
  Hub hub;
  int states = 0;
  hub.ListenAll([&](JobId, News) { ++states; });
  hub.Tell(JobId::New(), News::kLog);
  hub.Tell(JobId::New(), News::kState);
  EXPECT_EQ(states, 1);
}

TEST(Names, AreTwoWordsAndTheSameForTheSameId) {
  auto id = NewUlid();
  EXPECT_EQ(FriendlyName(id), FriendlyName(id));
  EXPECT_EQ(Split(FriendlyName(id), '-').size(), 2u);
}

}  // namespace
}  // namespace athanor
