#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "net/http/router.h"

// A path that is accepted names nothing outside its folder.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string path(reinterpret_cast<const char*>(data), size);
  const auto segments = athanor::SplitPath(path);
  if (!segments) return 0;
  for (const auto& segment : *segments) {
    if (segment.empty() || segment.find('\0') != std::string::npos) std::abort();
    if (segment.find('\\') != std::string::npos) std::abort();
    const std::string framed = "/" + segment + "/";
    if (framed.find("/../") != std::string::npos || framed.find("/./") != std::string::npos ||
        framed.find("//") != std::string::npos) {
      std::abort();
    }
  }
  return 0;
}
