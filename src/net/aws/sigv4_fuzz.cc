#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/aws/sigv2.h"
#include "net/aws/sigv4.h"
#include "net/http/request_parser.h"

// Any claim of a request can be read or refused; nothing verifies without the secret.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  athanor::RequestParser parser(64 << 10);
  parser.Feed({reinterpret_cast<const char*>(data), size}, {});
  if (!parser.head_done() || parser.problem()) return 0;
  const athanor::Request& head = parser.request();
  if (athanor::HasSigV2(head)) {
    const auto claim = athanor::ParseSigV2(head, "us-west-2");
    const athanor::WallTime start{0};
    if (claim && athanor::VerifySigV2(*claim, head, "not guessed", start)) std::abort();
  }
  if (!athanor::HasSigV4(head)) return 0;
  const auto claim = athanor::ParseSigV4(head);
  if (!claim) return 0;
  const athanor::WallTime now{claim->signed_at_ms};
  if (athanor::VerifySigV4(*claim, head, "not guessed", now)) std::abort();
  return 0;
}
