// Takes the bytes of one HTTP/1.x request apart as they arrive (Beast's parser
// inside). Pure: no sockets. Refuses what makes two readers of one request
// disagree: two lengths, a length beside a transfer encoding, a missing or second
// Host, any transfer encoding but chunked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_types.h"

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

  // Takes a prefix of `bytes` and returns its size. What is not taken must be
  // given again with more behind it; it stops at the end of the head and at the
  // end of the request. Body bytes go to `on_body`.
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
