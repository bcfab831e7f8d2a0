// A small blocking HTTP/1.1 client over plain sockets and TLS, for programs that start in a
// millisecond: the CLI and the agent. One connection at a time, kept alive. No proxies, no
// redirects. TLS is set up by the first connection that needs it.
//
// Threads: one at a time. Errors: kUnavailable if the server cannot be reached or hangs up,
// kTimeout if it is silent, kCorrupt if it does not speak HTTP, kCancelled by `cancel_fd`; each
// names the address. An HTTP status, even 500, is not an error here.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/http_types.h"

namespace athanor {

// "unix:/run/a.sock", "http://127.0.0.1:7070", "http://[::1]:7070", "https://host".
struct Endpoint {
  std::string unix_path;  // empty: host and port
  std::string host;
  uint16_t port = 80;
  bool tls = false;  // https: the certificate must be valid for `host`, or have the pin

  // kInvalid for anything else, including one with a path.
  static Result<Endpoint> Parse(std::string_view text);
  std::string ToString() const;
  bool operator==(const Endpoint&) const = default;
};

struct HttpReply {
  int status = 0;
  Headers headers;
  std::string body;
  bool ok() const { return status >= 200 && status < 300; }
};

struct HttpCall {
  std::string method = "GET";
  std::string target = "/";
  Headers headers;
  std::string body;
  // Set: the body is `body_length` bytes of this descriptor from `body_offset`,
  // asked for by "Expect: 100-continue" first.
  int body_fd = -1;
  uint64_t body_offset = 0;
  uint64_t body_length = 0;

  // Where the body of a 2xx answer goes: the callback (false: stop, the call succeeds with what
  // arrived so far), otherwise the descriptor, otherwise HttpReply::body. Bodies of other answers
  // always go to HttpReply::body.
  std::function<bool(std::string_view)> on_body;
  // Called with status and headers before the first byte of the body.
  std::function<void(const HttpReply&)> on_head;
  int body_to_fd = -1;
  uint64_t max_body = 256 << 20;  // of HttpReply::body; kExhausted beyond

  // May be sent twice: if a kept connection turns out to be closed, it is sent again.
  bool idempotent = false;
  // Readable: give up with kCancelled. For signalfds and pipes.
  int cancel_fd = -1;
  // Longest silence while waiting for bytes; zero uses the client's default.
  std::chrono::milliseconds read_timeout{0};
};

struct HttpClientOptions {
  std::chrono::milliseconds connect_timeout{5'000};  // with TLS: until that is set up
  std::chrono::milliseconds read_timeout{30'000};
  // Called for each address that the host's name resolves to, before anything is sent there. The
  // connection goes to exactly the address that was checked. kDenied if none is left.
  std::function<bool(const sockaddr& address)> allow;
  // With https: the server is the one whose certificate has the public key with this sha256
  // (net/certificate.h), whatever its name. kDenied if another one answers; nothing was sent to it.
  std::string pin;
};

class HttpClient {
 public:
  explicit HttpClient(Endpoint endpoint, HttpClientOptions options = {});
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  Result<HttpReply> Do(const HttpCall& call);
  Result<HttpReply> Get(std::string target);
  Result<HttpReply> PostJson(std::string target, std::string body);

  const Endpoint& endpoint() const;
  void Disconnect();  // the next call connects again

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace athanor
