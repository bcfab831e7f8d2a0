// Any bytes as a manifest: refused, or exactly what we would write.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "job/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto manifest = athanor::ReadManifest(text);
  if (manifest && athanor::WriteManifest(*manifest) != text) std::abort();
  return 0;
}
