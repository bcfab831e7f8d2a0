// What parses must print, and parse again to the same value.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto value = athanor::ParseJson({reinterpret_cast<const char*>(data), size});
  if (!value) return value.error().where.empty() ? (std::abort(), 0) : 0;
  const auto again = athanor::ParseJson(athanor::DumpJson(*value));
  if (!again || *again != *value) std::abort();
  return 0;
}
