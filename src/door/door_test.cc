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
