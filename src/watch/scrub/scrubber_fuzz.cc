#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "watch/scrub/encodings.h"
#include "watch/scrub/scrubber.h"

// Two bytes of sizes, a secret, then the stream: cut in pieces, it must give the same output as in
// one piece, and without the secret in any form.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  if (size < 8) return 0;
  const size_t piece = 1 + data[0] % 32;
  const size_t length = 6 + data[1] % 24;
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string secret(rest.substr(0, length));
  rest.remove_prefix(std::min(length, rest.size()));
  const auto patterns = SecretPatterns::Make({{"N", secret}});
  if (!patterns) return 0;

  std::string text(rest);
  text += secret;
  text += rest;
  Scrubber whole(*patterns);
  std::string expected(whole.Feed(text));
  expected += whole.Flush();
  Scrubber scrubber(*patterns);
  std::string out;
  for (size_t at = 0; at < text.size(); at += piece) {
    out += scrubber.Feed(std::string_view(text).substr(at, piece));
    if (scrubber.held() >= (*patterns)->longest()) std::abort();
  }
  out += scrubber.Flush();
  if (out != expected || scrubber.replaced() == 0) std::abort();
  // A marker may meet its neighbours to form anything if the secret has its stars.
  if (secret.find('*') == std::string::npos && secret.find('N') == std::string::npos &&
      out.find(secret) != std::string::npos) {
    std::abort();
  }
  return 0;
}
