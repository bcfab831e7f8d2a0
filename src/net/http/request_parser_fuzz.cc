#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http/request_parser.h"

namespace {

struct Outcome {
  bool refused = false;
  bool done = false;
  std::string target;
  std::string body;
  std::string left;
  bool operator==(const Outcome&) const = default;
};

Outcome Parse(std::string_view bytes, size_t step) {
  athanor::RequestParser parser(64 << 10);
  Outcome outcome;
  std::string pending;
  for (size_t at = 0; at < bytes.size() && !outcome.refused; at += step) {
    pending += bytes.substr(at, step);
    while (!parser.done() && !pending.empty()) {
      const size_t taken =
          parser.Feed(pending, [&](std::string_view piece) { outcome.body += piece; });
      pending.erase(0, taken);
      outcome.refused = parser.problem().has_value();
      if (taken == 0 || outcome.refused) break;
    }
  }
  outcome.done = !outcome.refused && parser.done();
  if (outcome.done) {
    outcome.target = parser.request().target;
    outcome.left = pending;
    return outcome;
  }
  // Whether a broken head is refused now or only at its end depends on the cuts.
  return Outcome{};
}

}  // namespace

// A request means the same, no matter how its bytes are cut. Otherwise, two servers in a row could
// disagree about where it ends.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = Parse(bytes, size + 1);
  if (!(Parse(bytes, 1) == whole) || !(Parse(bytes, 5) == whole)) std::abort();
  return 0;
}
