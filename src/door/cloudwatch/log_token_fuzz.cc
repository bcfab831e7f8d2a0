#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "door/cloudwatch/log_events.h"
#include "door/cloudwatch/log_streams.h"
#include "door/cloudwatch/members.h"

// What is read is written the same way again: equal places are equal tokens.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto position = athanor::LogPosition::Parse(text)) {
    if (position->ToString() != text || position->from > position->entry) std::abort();
  }
  if (const auto name = athanor::StreamName::Parse(text)) {
    const auto again = athanor::StreamName::Parse(name->ToString());
    if (!again || again->job != name->job || again->host != name->host ||
        again->start_ms != name->start_ms) {
      std::abort();
    }
  }
  (void)athanor::ParseIsoTime(text);
  return 0;
}
