// Any bytes as a message, a document or a text: nothing breaks, and the value is gone.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "run/ship/exit_gate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const athanor::ExitGate gate(
      *athanor::SecretPatterns::Make({{"KEY", "aaaaab"}, {"OTHER", "q/w+e=r"}}));
  const std::string input(reinterpret_cast<const char*>(data), size);
  for (const auto scrub : {&athanor::ExitGate::ScrubText, &athanor::ExitGate::ScrubMessage}) {
    std::string once = input;
    const bool any = (gate.*scrub)(once);
    if (!any && once != input) std::abort();
    if (any && once.find("aaaaab") != std::string::npos) std::abort();
    std::string twice = once;
    if ((gate.*scrub)(twice) && any) std::abort();
  }
  std::string document = input;
  if (!gate.ScrubJson(document) && document != input) std::abort();
  (void)athanor::IsTextBegin(input);
  return 0;
}
