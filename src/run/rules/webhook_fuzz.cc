#include <cstdint>
#include <cstdlib>
#include <string>

#include "net/http/http_client.h"
#include "run/rules/webhook.h"

// Every accepted URL can be connected to over TLS, and breaks no line of a request.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string url(reinterpret_cast<const char*>(data), size);
  const auto target = athanor::ParseWebhook(url);
  if (!target) return 0;
  if (!athanor::Endpoint::Parse(target->endpoint)) std::abort();
  if (target->endpoint.compare(0, 8, "https://") != 0) std::abort();
  if (target->endpoint.find('@') != std::string::npos) std::abort();
  if (target->target.empty() || target->target[0] != '/') std::abort();
  for (const char c : target->endpoint + target->target) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '#') std::abort();
  }
  return 0;
}
