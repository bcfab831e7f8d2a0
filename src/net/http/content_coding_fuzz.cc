#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/http/content_coding.h"

// Whatever a client says about codings, it gets only one that it named, and a 304 only if it named
// the ETag.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view accept = text.substr(0, text.find('\n'));
  const std::string_view have =
      text.find('\n') == std::string_view::npos ? "" : text.substr(text.find('\n') + 1);
  athanor::Request request;
  request.method = "GET";
  request.headers.Add("Accept-Encoding", std::string(accept));
  request.headers.Add("If-None-Match", std::string(have));
  const auto wishes = athanor::WishesOf(request);
  auto holds = [&](std::string_view word) {
    for (size_t i = 0; i + word.size() <= accept.size(); ++i) {
      if (athanor::SameName(accept.substr(i, word.size()), word)) return true;
    }
    return false;
  };
  if (wishes.coding == athanor::Coding::kZstd && !holds("zstd")) std::abort();
  if (wishes.coding == athanor::Coding::kGzip && !holds("gzip") && !holds("*")) std::abort();
  auto response = athanor::Response::Json(200, std::string(2000, 'x'));
  athanor::Fit(wishes, response);
  if (response.status == 304 && have.empty()) std::abort();
  if (response.status == 304 && !response.body.empty()) std::abort();
  return 0;
}
