#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "net/http/sse.h"

namespace {

std::vector<athanor::SseEvent> Parse(std::string_view bytes, size_t step) {
  athanor::SseParser parser;
  std::vector<athanor::SseEvent> events;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const auto status = parser.Feed(bytes.substr(at, step), [&](const athanor::SseEvent& event) {
      events.push_back(event);
      return true;
    });
    if (!status.ok()) break;
  }
  return events;
}

}  // namespace

// The events are the same, no matter how the bytes are cut; and what was read can be written and
// read back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = Parse(bytes, size + 1);
  if (Parse(bytes, 1) != whole || Parse(bytes, 3) != whole) std::abort();
  for (auto event : whole) {
    const auto again = Parse(athanor::FormatSse(event), 1000);
    if (again.size() != 1 || again[0].data != event.data) std::abort();
  }
  return 0;
}
