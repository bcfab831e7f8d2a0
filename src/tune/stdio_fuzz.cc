// Every line gets one answer that is JSON, whatever came before.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tune/stdio.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tune::StdioProtocol protocol;
  int asks = 0;
  for (size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    const auto line = text.substr(from, end - from);
    from = end + 1;
    if (line.find("ask") != std::string_view::npos && ++asks > 20) continue;
    const auto answer = protocol.Answer(line);
    if (answer.empty()) return 0;
    const auto parsed = ParseJson(answer);
    if (!parsed || !parsed->is_object() || answer.find('\n') != std::string::npos) std::abort();
  }
  return 0;
}
