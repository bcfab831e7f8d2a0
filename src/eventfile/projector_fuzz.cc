// Any bytes as a projector's config, and as its tables.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "eventfile/projector.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& one : athanor::ReadProjectorConfig(text)) {
    if (one.tensor_path.empty() || one.tensor_path[0] == '/') std::abort();
  }
  const auto half = size / 2;
  const auto rows = athanor::ReadVectors(text.substr(0, half), text.substr(half), 100);
  if (rows.dimensions != 0 && rows.values.size() % rows.dimensions != 0) std::abort();
  return 0;
}
