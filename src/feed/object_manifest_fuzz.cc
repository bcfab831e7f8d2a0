// An object that a channel names as its manifest may contain any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "feed/object_channel.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto manifest = athanor::ParseObjectManifest(text)) {
    for (const auto& name : manifest->names) {
      (void)athanor::NameInChannel(manifest->prefix.key, manifest->prefix.key + name).has_value();
    }
  }
  return 0;
}
