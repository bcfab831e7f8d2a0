#include "serve/test_machine.h"

#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text/json.h"

namespace athanor {

Result<std::unique_ptr<CommandBackend>> TestMachine() {
  const char* text = std::getenv("ATHANOR_TEST_MACHINE");
  if (text == nullptr) return std::unique_ptr<CommandBackend>();
  ATHANOR_TRY(const auto json, ParseJson(text));
  CommandBackend::Options options;
  try {
    options.name = json.at("name").get<std::string>();
    options.reach = json.at("reach").get<std::vector<std::string>>();
    options.program = json.at("program").get<std::string>();
    options.folder = json.at("folder").get<std::string>();
  } catch (const nlohmann::json::exception& e) {
    return Fail(ErrorCode::kInvalid, std::string("ATHANOR_TEST_MACHINE: ") + e.what());
  }
  return std::make_unique<CommandBackend>(std::move(options));
}

}  // namespace athanor
