// Any text as the checksums of artifacts: lines are accepted completely or counted as damaged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "record/artifacts/artifact_sums.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto sums = athanor::ReadArtifactSums({reinterpret_cast<const char*>(data), size});
  for (const auto& [path, known] : sums.by_path) {
    if (path.empty() || known.empty()) std::abort();
    (void)athanor::ArtifactSumsPath(path);
  }
  return 0;
}
