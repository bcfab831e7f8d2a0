// Any text as a page token: it is refused, or writing it again gives the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "track/run_place.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view token(reinterpret_cast<const char*>(data), size);
  const auto place = athanor::DecodePlace(token);
  if (!place) return 0;
  const std::string made = athanor::EncodePlace(*place);
  const auto again = athanor::DecodePlace(made);
  if (!again || athanor::EncodePlace(*again) != made) std::abort();
  for (const auto& value : place->values) {
    if (athanor::Compare(value.view(), value.view(), true) != 0) std::abort();
  }
  return 0;
}
