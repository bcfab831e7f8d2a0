// Filters come from anyone who can reach the port: parsing must end, and what it accepts must be
// evaluable.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "track/filter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Searched what : {Searched::kRuns, Searched::kExperiments, Searched::kModels,
                              Searched::kVersions, Searched::kLoggedModels}) {
    if (const auto clauses = ParseFilter(text, what)) {
      for (const auto& clause : *clauses) {
        (void)Passes(clause, text.substr(0, 1000));
        (void)Passes(clause, 1.5);
        if (clause.key.empty()) __builtin_trap();
      }
    }
    (void)ParseOrderBy(text, what).has_value();
  }
  return 0;
}
