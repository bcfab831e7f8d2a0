#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "door/cloudwatch/filter_pattern.h"

// The first line is a pattern, the rest a message. What is refused says why.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t end = text.find('\n');
  const auto pattern = athanor::FilterPattern::Parse(text.substr(0, end));
  if (!pattern) {
    if (pattern.error().what.empty()) std::abort();
    return 0;
  }
  if (end != std::string_view::npos) (void)pattern->Matches(text.substr(end + 1));
  return 0;
}
