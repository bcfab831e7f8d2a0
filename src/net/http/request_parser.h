// Parses one HTTP/1.x request as its bytes arrive (uses Beast's parser). Pure: no sockets. Refuses
// requests that two parsers could understand differently: two lengths, a length and a transfer
// encoding, a missing or second Host, any transfer encoding other than chunked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/http_types.h"

namespace athanor {

class RequestParser {
 public:
  struct Problem {
    int status = 400;
    std::string what;
  };

  explicit RequestParser(size_t max_head_bytes);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Consumes a prefix of `bytes` and returns its size. The rest must be given again, followed by
  // more; it stops at the end of the head and at the end of the request. Body bytes go to
  // `on_body`.
  size_t Feed(std::string_view bytes, const std::function<void(std::string_view)>& on_body);

  const std::optional<Problem>& problem() const;
  bool head_done() const;
  bool done() const;

  // Once head_done():
  Request& request();
  std::optional<uint64_t> content_length() const;  // none: chunked, or no body
  bool expects_continue() const;
  bool keep_alive() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace athanor
