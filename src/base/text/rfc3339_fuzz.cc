#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text/rfc3339.h"

// A time that is accepted is written and read again as the same time.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto time = athanor::ParseRfc3339({reinterpret_cast<const char*>(data), size});
  if (time && athanor::ParseRfc3339(athanor::Rfc3339(*time)) != time) std::abort();
  return 0;
}
