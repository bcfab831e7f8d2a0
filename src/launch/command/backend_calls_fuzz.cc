// What another machine prints, and what it is sent, may be any bytes.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launch/command/backend_calls.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace calls = athanor::backend_calls;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)calls::DecodeHandle(text).has_value();
  (void)calls::DecodeDone(text).ok();
  if (const auto polled = calls::DecodePolled(text);
      polled && !calls::DecodePolled(calls::EncodePolled(*polled))) {
    __builtin_trap();  // what was understood once must be understood again
  }
  if (const auto call = calls::DecodeCall(text); call && !calls::DecodeCall(calls::Encode(*call))) {
    __builtin_trap();
  }
  return 0;
}
