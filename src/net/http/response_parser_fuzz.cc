#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http/response_parser.h"

namespace {

struct Outcome {
  bool ok = true;
  bool done = false;
  int status = 0;
  size_t taken = 0;
  std::string body;
  bool operator==(const Outcome&) const = default;
};

Outcome Parse(std::string_view bytes, size_t step) {
  athanor::ResponseParser parser(false);
  Outcome outcome;
  while (outcome.taken < bytes.size() && !parser.done()) {
    const auto taken = parser.Feed(bytes.substr(outcome.taken, step), [&](std::string_view piece) {
      outcome.body += piece;
      return true;
    });
    outcome.ok = taken.has_value();
    if (!taken) break;
    if (*taken == 0) std::abort();  // it must continue or end
    outcome.taken += *taken;
  }
  outcome.done = parser.done();
  outcome.status = outcome.done ? parser.status() : 0;
  // Where exactly an error is noticed may depend on the cuts.
  if (!outcome.ok) outcome.taken = 0;
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = Parse(bytes, size + 1);
  if (!(Parse(bytes, 1) == whole) || !(Parse(bytes, 7) == whole)) std::abort();
  return 0;
}
