#include "net/http/http_client.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/io/files.h"
#include "base/text/text.h"
#include "net/http/response_parser.h"
#include "net/transport.h"
#include "net/unix_address.h"

namespace athanor {
namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kBuffer = 64 << 10;
// Do not wait longer than this for a server that does not know "Expect".
constexpr milliseconds kContinueWait{1'000};

std::string RequestHead(const Endpoint& endpoint, const HttpCall& call) {
  std::string head = call.method + " " + call.target + " HTTP/1.1\r\n";
  if (!call.headers.Has("Host")) {
    const bool v6 = endpoint.host.find(':') != std::string::npos;
    head += "Host: ";
    if (!endpoint.unix_path.empty()) {
      head += "localhost";
    } else {
      head += v6 ? "[" + endpoint.host + "]" : endpoint.host;
      head += ":" + std::to_string(endpoint.port);
    }
    head += "\r\n";
  }
  for (const auto& [name, value] : call.headers.fields()) head += name + ": " + value + "\r\n";
  const bool with_body = call.body_fd >= 0 || !call.body.empty() ||
                         (call.method != "GET" && call.method != "HEAD" && call.method != "DELETE");
  if (with_body) {
    const uint64_t length = call.body_fd >= 0 ? call.body_length : call.body.size();
    head += "Content-Length: " + std::to_string(length) + "\r\n";
  }
  if (call.body_fd >= 0 && call.body_length > 0) head += "Expect: 100-continue\r\n";
  head += "\r\n";
  return head;
}

// A line end in a header or target would allow someone to inject a second request.
Status CheckCall(const HttpCall& call) {
  const auto has_control = [](std::string_view text, bool spaces_too) {
    return std::any_of(text.begin(), text.end(), [&](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || (spaces_too && c == ' ');
    });
  };
  bool bad = call.method.empty() || has_control(call.method, true) || call.target.empty() ||
             has_control(call.target, true);
  for (const auto& [name, value] : call.headers.fields()) {
    bad |= name.empty() || name.find(':') != std::string::npos || has_control(name, true) ||
           has_control(value, false);
  }
  if (bad) return Fail(ErrorCode::kInvalid, "the request line or a header has odd characters");
  return Ok();
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  const auto bad = [&](std::string why) {
    return Fail(Error{ErrorCode::kInvalid, "\"" + Printable(text) + "\" is not a server address",
                      "use http://HOST:PORT, https://HOST:PORT or unix:/path/to/socket"}
                    .Why(std::move(why)));
  };
  Endpoint endpoint;
  if (StartsWith(text, "unix:")) {
    endpoint.unix_path = text.substr(5);
    if (endpoint.unix_path.empty() || endpoint.unix_path[0] != '/') {
      return bad("the socket's path is not absolute");
    }
    return endpoint;
  }
  endpoint.tls = StartsWith(text, "https://");
  if (endpoint.tls) endpoint.port = 443;
  if (!endpoint.tls && !StartsWith(text, "http://")) {
    return bad("it starts with neither http://, https:// nor unix:");
  }
  std::string_view rest = text.substr(endpoint.tls ? 8 : 7);
  if (EndsWith(rest, "/")) rest.remove_suffix(1);
  std::string_view port;
  if (!rest.empty() && rest.front() == '[') {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return bad("a ] is missing");
    endpoint.host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const size_t colon = std::min(rest.find(':'), rest.size());
    endpoint.host = rest.substr(0, colon);
    port = rest.substr(colon);
  }
  if (endpoint.host.empty() || endpoint.host.find_first_of("/?#@% \r\n\t") != std::string::npos) {
    return bad("the host name is malformed");
  }
  if (port.empty()) return endpoint;
  port.remove_prefix(1);
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
  if (port.empty() || error != std::errc() || stop != port.data() + port.size() ||
      endpoint.port == 0) {
    return bad("the port is not a number from 1 to 65535");
  }
  return endpoint;
}

std::string Endpoint::ToString() const {
  if (!unix_path.empty()) return "unix:" + unix_path;
  const bool v6 = host.find(':') != std::string::npos;
  return (tls ? "https://" : "http://") + (v6 ? "[" + host + "]" : host) + ":" +
         std::to_string(port);
}

struct HttpClient::Impl {
  Endpoint endpoint;
  HttpClientOptions options;
  UniqueFd fd;
  std::unique_ptr<Transport> transport;  // over fd
  TransportFactory secure;               // of TLS, once it was needed
  std::string buffer;

  struct Conversation {
    const HttpCall& call;
    ResponseParser parser;
    HttpReply reply;
    bool head_seen = false;
    bool any_byte = false;
    Status sink;  // the result of the body's destination

    explicit Conversation(const HttpCall& the_call)
        : call(the_call), parser(the_call.method == "HEAD") {}
    void SeeHead();
    bool Deliver(std::string_view bytes);
  };

  Status Connect(int cancel_fd);
  Status ConnectTo(const sockaddr* address, socklen_t size, int cancel_fd);
  Status Secure(SteadyTime until, int cancel_fd);
  void Close() {
    transport.reset();
    fd.reset();
  }
  Result<short> Wait(short events, milliseconds timeout, int cancel_fd) const;
  // While connecting: the whole of it must not take longer than that.
  Status WaitUntil(short events, SteadyTime until, int cancel_fd) const;
  Status Send(std::string_view bytes, Conversation& talk);
  Status SendFileBody(Conversation& talk);
  Status AwaitContinue(Conversation& talk);
  Result<bool> ReadSome(Conversation& talk);
  Status Converse(Conversation& talk);
  bool IsStale() const;

  milliseconds ReadTimeout(const HttpCall& call) const {
    return call.read_timeout.count() > 0 ? call.read_timeout : options.read_timeout;
  }
  tl::unexpected<Error> Lost() const {
    auto error = Broken("lost the connection to", errno != 0 ? errno : ECONNRESET).value();
    if (!transport->why().empty()) error.why = transport->why();
    return Fail(std::move(error));
  }
  tl::unexpected<Error> Broken(const char* what, int error) const {
    return Fail(Error{ErrorCode::kUnavailable, std::string(what) + " " + endpoint.ToString()}.Why(
        std::strerror(error)));
  }
};

void HttpClient::Impl::Conversation::SeeHead() {
  if (head_seen || !parser.head_done()) return;
  head_seen = true;
  reply.status = parser.status();
  reply.headers = std::move(parser.headers());
  if (call.on_head) call.on_head(reply);
}

bool HttpClient::Impl::Conversation::Deliver(std::string_view bytes) {
  SeeHead();
  if (reply.ok() && call.on_body) return call.on_body(bytes);
  if (reply.ok() && call.body_to_fd >= 0) {
    sink = WriteAll(call.body_to_fd, bytes);
  } else if (reply.body.size() + bytes.size() > call.max_body) {
    sink = Fail(ErrorCode::kExhausted, "the answer is larger than " + HumanBytes(call.max_body));
  } else {
    reply.body += bytes;
  }
  return sink.ok();
}

Result<short> HttpClient::Impl::Wait(short events, milliseconds timeout, int cancel_fd) const {
  if ((events & POLLIN) && transport && transport->pending()) return POLLIN;
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    pollfd polled[2] = {{fd.get(), events, 0}, {cancel_fd, POLLIN, 0}};
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    const int ready = ::poll(polled, cancel_fd >= 0 ? 2 : 1,
                             static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30)));
    if (ready < 0 && errno != EINTR) return Broken("cannot wait for", errno);
    if (ready > 0 && polled[1].revents != 0) {
      return Fail(ErrorCode::kCancelled, "the call to " + endpoint.ToString() + " was cancelled");
    }
    if (ready > 0) return polled[0].revents;
    if (ready == 0) {
      return Fail(ErrorCode::kTimeout,
                  endpoint.ToString() + " did not answer within " + HumanDuration(timeout));
    }
  }
}

Status HttpClient::Impl::WaitUntil(short events, SteadyTime until, int cancel_fd) const {
  const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
  auto ready = Wait(events, std::max(left, milliseconds(0)), cancel_fd);
  if (ready) return Ok();
  if (ready.error().code == ErrorCode::kTimeout) {
    ready.error().what = endpoint.ToString() + " cannot be reached: no answer within " +
                         HumanDuration(options.connect_timeout);
  }
  return Fail(ready.error());
}

Status HttpClient::Impl::ConnectTo(const sockaddr* address, socklen_t size, int cancel_fd) {
  fd.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Broken("cannot connect to", errno);
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const auto until = std::chrono::steady_clock::now() + options.connect_timeout;
  if (::connect(fd.get(), address, size) == 0) return Secure(until, cancel_fd);
  int error = errno;
  if (error == EINPROGRESS) {
    ATHANOR_CHECK_OK(WaitUntil(POLLOUT, until, cancel_fd));
    socklen_t error_size = sizeof error;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &error_size);
    if (error == 0) return Secure(until, cancel_fd);
  }
  fd.reset();
  return Broken("cannot connect to", error);
}

Status HttpClient::Impl::Secure(SteadyTime until, int cancel_fd) {
  if (!endpoint.tls) {
    transport = MakePlainTransport(fd.get());
    return Ok();
  }
  if (!secure) {
    ATHANOR_TRY(secure, options.pin.empty() ? MakeTlsClientTransports(endpoint.host)
                                            : MakePinnedClientTransports(options.pin));
  }
  auto made = secure(fd.get());
  for (;;) {
    switch (made->Handshake().io) {
      case Transport::Io::kDone:
        transport = std::move(made);
        return Ok();
      case Transport::Io::kWantRead:
        ATHANOR_CHECK_OK(WaitUntil(POLLIN, until, cancel_fd));
        break;
      case Transport::Io::kWantWrite:
        ATHANOR_CHECK_OK(WaitUntil(POLLOUT, until, cancel_fd));
        break;
      case Transport::Io::kEof:
      case Transport::Io::kError: {
        const bool stranger = made->is_stranger();
        const char* hint =
            options.pin.empty() ? "SSL_CERT_FILE names the authorities (PEM) that are trusted" : "";
        return Fail(Error{stranger ? ErrorCode::kDenied : ErrorCode::kUnavailable,
                          stranger ? "another server answers at " + endpoint.ToString()
                                   : "cannot connect safely to " + endpoint.ToString(),
                          hint}
                        .Why(made->why().empty() ? "it hung up: does it speak TLS?" : made->why()));
      }
    }
  }
}

Status HttpClient::Impl::Connect(int cancel_fd) {
  if (!endpoint.unix_path.empty()) {
    const auto address = UnixAddress::For(endpoint.unix_path);
    if (!address) {
      if (address.error().code == ErrorCode::kInvalid) return Fail(address.error());
      return Broken("cannot connect to", ENOENT);  // the socket's folder is missing
    }
    return ConnectTo(address->get(), address->size, cancel_fd);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed != 0) {
    return Fail(Error{ErrorCode::kUnavailable, "cannot connect to " + endpoint.ToString()}.Why(
        ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  Status last = Fail(ErrorCode::kDenied, endpoint.ToString() + " is at no address that is allowed");
  for (const addrinfo* each = found; each; each = each->ai_next) {
    if (options.allow && !options.allow(*each->ai_addr)) continue;
    last = ConnectTo(each->ai_addr, each->ai_addrlen, cancel_fd);
    if (last.ok()) return last;
    Close();  // a connection that is only half made is not one for the next call
    if (last.error().code == ErrorCode::kCancelled) return last;
  }
  return last;
}

// An idle connection sends nothing: if it is readable, it was closed. But TLS may send session
// tickets, which a read consumes without returning bytes.
bool HttpClient::Impl::IsStale() const {
  pollfd polled{fd.get(), POLLIN | POLLRDHUP, 0};
  if (::poll(&polled, 1, 0) == 0 && !transport->pending()) return false;
  if (!transport->is_tls() || (polled.revents & (POLLRDHUP | POLLHUP | POLLERR))) return true;
  char byte = 0;
  return transport->Read(&byte, 1).io != Transport::Io::kWantRead;
}

// False: the other side sends no more.
Result<bool> HttpClient::Impl::ReadSome(Conversation& talk) {
  if (buffer.empty()) buffer.resize(kBuffer);
  errno = 0;
  const auto got = transport->Read(buffer.data(), buffer.size());
  if (got.io == Transport::Io::kWantRead || got.io == Transport::Io::kWantWrite) return true;
  if (got.io == Transport::Io::kError) return Lost();
  if (got.io == Transport::Io::kEof) {
    if (Status ended = talk.parser.Eof(); !ended.ok()) {
      Error error = ended.error();
      error.what = endpoint.ToString() + ": " + error.what;
      return Fail(std::move(error));
    }
    talk.SeeHead();
    return false;
  }
  talk.any_byte = true;
  const std::string_view bytes(buffer.data(), got.bytes);
  auto taken =
      talk.parser.Feed(bytes, [&talk](std::string_view piece) { return talk.Deliver(piece); });
  if (!taken) {
    taken.error().what = endpoint.ToString() + ": " + taken.error().what;
    return Fail(taken.error());
  }
  talk.SeeHead();
  // Bytes that we did not ask for: do not use this connection again.
  if (talk.parser.done() && *taken < bytes.size()) return false;
  return true;
}

// Watches for an answer that arrives before the request is sent completely.
Status HttpClient::Impl::Send(std::string_view bytes, Conversation& talk) {
  while (!bytes.empty() && !talk.parser.head_done()) {
    errno = 0;
    const auto put = transport->Write(bytes);
    if (put.io == Transport::Io::kDone) {
      bytes.remove_prefix(put.bytes);
      continue;
    }
    if (put.io == Transport::Io::kError || put.io == Transport::Io::kEof) return Lost();
    ATHANOR_TRY(const short ready,
                Wait(POLLOUT | POLLIN, ReadTimeout(talk.call), talk.call.cancel_fd));
    if (ready & POLLIN) ATHANOR_CHECK_OK(ReadSome(talk));
  }
  return Ok();
}

Status HttpClient::Impl::AwaitContinue(Conversation& talk) {
  const auto until = std::chrono::steady_clock::now() + kContinueWait;
  while (!talk.parser.saw_continue() && !talk.parser.head_done()) {
    const auto left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Ok();
    const auto ready = Wait(POLLIN, left, talk.call.cancel_fd);
    if (!ready && ready.error().code == ErrorCode::kTimeout) return Ok();
    if (!ready) return Fail(ready.error());
    ATHANOR_CHECK_OK(ReadSome(talk));
  }
  return Ok();
}

Status HttpClient::Impl::SendFileBody(Conversation& talk) {
  ATHANOR_CHECK_OK(AwaitContinue(talk));
  std::string piece(kBuffer, '\0');
  uint64_t at = talk.call.body_offset;
  uint64_t left = talk.call.body_length;
  while (left > 0 && !talk.parser.head_done()) {
    const ssize_t got = ::pread(talk.call.body_fd, piece.data(),
                                std::min<uint64_t>(piece.size(), left), static_cast<off_t>(at));
    if (got < 0) return FailErrno("read the body to send", errno);
    if (got == 0) return Fail(ErrorCode::kInvalid, "the body to send is shorter than announced");
    ATHANOR_CHECK_OK(Send({piece.data(), static_cast<size_t>(got)}, talk));
    at += static_cast<uint64_t>(got);
    left -= static_cast<uint64_t>(got);
  }
  return Ok();
}

Status HttpClient::Impl::Converse(Conversation& talk) {
  std::string head = RequestHead(endpoint, talk.call);
  Status sent;
  if (talk.call.body_fd >= 0) {
    sent = Send(head, talk);
    if (sent.ok() && talk.call.body_length > 0) sent = SendFileBody(talk);
  } else {
    sent = Send(head += talk.call.body, talk);
  }
  // A server may refuse and hang up while we are still sending: its answer counts.
  if (!sent.ok() && sent.error().code != ErrorCode::kUnavailable) return sent;
  const bool early = talk.parser.head_done() || !sent.ok();
  bool more = true;
  while (more && !talk.parser.done() && !talk.parser.stopped()) {
    ATHANOR_CHECK_OK(Wait(POLLIN, ReadTimeout(talk.call), talk.call.cancel_fd));
    const auto read = ReadSome(talk);
    if (!read) return sent.ok() ? Status(Fail(read.error())) : sent;
    more = *read;
  }
  ATHANOR_CHECK_OK(talk.sink);
  if (early || !more || talk.parser.stopped() || !talk.parser.keep_alive()) Close();
  return Ok();
}

HttpClient::HttpClient(Endpoint endpoint, HttpClientOptions options) : impl_(new Impl) {
  impl_->endpoint = std::move(endpoint);
  impl_->options = options;
}

HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

Result<HttpReply> HttpClient::Do(const HttpCall& call) {
  ATHANOR_CHECK_OK(CheckCall(call));
  for (bool retried = false;; retried = true) {
    if (impl_->fd && impl_->IsStale()) Disconnect();
    const bool kept = static_cast<bool>(impl_->fd);
    if (!kept) ATHANOR_CHECK_OK(impl_->Connect(call.cancel_fd));
    Impl::Conversation talk(call);
    const Status status = impl_->Converse(talk);
    if (status.ok()) return std::move(talk.reply);
    Disconnect();
    const bool again = kept && !retried && call.idempotent && !talk.any_byte &&
                       status.error().code == ErrorCode::kUnavailable;
    if (!again) return Fail(status.error());
  }
}

Result<HttpReply> HttpClient::Get(std::string target) {
  HttpCall call;
  call.target = std::move(target);
  call.idempotent = true;
  return Do(call);
}

Result<HttpReply> HttpClient::PostJson(std::string target, std::string body) {
  HttpCall call;
  call.method = "POST";
  call.target = std::move(target);
  call.headers.Add("Content-Type", "application/json");
  call.body = std::move(body);
  return Do(call);
}

const Endpoint& HttpClient::endpoint() const { return impl_->endpoint; }
void HttpClient::Disconnect() { impl_->Close(); }

}  // namespace athanor
