#include <gtest/gtest.h>

#include <set>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "door/access.h"
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

}  // namespace
}  // namespace athanor
