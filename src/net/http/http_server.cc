#include "net/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "net/http/http_connection.h"
#include "net/unix_address.h"

namespace athanor {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};
// Sent to a new client when all connections are in use and none is idle.
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: 74\r\n\r\n"
    "{\"error\":{\"code\":\"unavailable\",\"what\":\"the server has too many clients\"}}\n";

struct Listener {
  UniqueFd fd;
  std::unique_ptr<FdWatch> watch;  // after fd, hence destroyed before it
  TransportFactory transports;
  bool tcp = false;
  std::string unix_path;  // to be removed, if it is still this inode
  ino_t inode = 0;

  void Close() {
    watch.reset();
    fd.reset();
    struct stat now {};
    if (!unix_path.empty() && ::stat(unix_path.c_str(), &now) == 0 && now.st_ino == inode) {
      ::unlink(unix_path.c_str());
    }
    unix_path.clear();
  }
};

// A socket at `path` that refuses connections was left by a server that died.
Status RemoveStaleSocket(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return Ok();
  if (!S_ISSOCK(found.st_mode)) {
    return Fail(ErrorCode::kConflict, path + " exists and is not a socket");
  }
  ATHANOR_TRY(const auto address, UnixAddress::For(path));
  UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return FailErrno("socket", errno);
  // EAGAIN: its queue is full, so a server has it open.
  if (::connect(probe.get(), address.get(), address.size) == 0 || errno != ECONNREFUSED) {
    return Fail(ErrorCode::kConflict, "another server answers at " + path);
  }
  if (::unlink(path.c_str()) != 0) return FailErrno("remove " + path, errno);
  return Ok();
}

struct TcpAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<TcpAddress> ParseTcpAddress(const std::string& address, uint16_t port) {
  TcpAddress result;
  auto& v4 = reinterpret_cast<sockaddr_in&>(result.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(result.storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    result.size = sizeof v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    result.size = sizeof v6;
  } else {
    return Fail(ErrorCode::kInvalid, "\"" + address + "\" is not an IP address",
                "give a literal address such as 127.0.0.1 or ::1");
  }
  return result;
}

Result<uint16_t> BoundPort(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return FailErrno("getsockname", errno);
  }
  return ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(bound).sin_port
                                          : reinterpret_cast<sockaddr_in6&>(bound).sin6_port);
}

}  // namespace

struct HttpServer::Impl : ConnectionHost {
  std::list<Listener> listeners;
  std::optional<Executor::TimerId> sweep;
  bool stopped = false;

  std::chrono::milliseconds SweepInterval() const {
    const auto shortest = std::min(
        {options.idle_timeout, options.head_timeout, options.body_timeout, options.write_timeout});
    return std::clamp(shortest / 4, std::chrono::milliseconds(10), std::chrono::milliseconds(1000));
  }

  Status Listen(Listener listener) {
    if (::listen(listener.fd.get(), SOMAXCONN) != 0) return FailErrno("listen", errno);
    ATHANOR_TRY(listener.watch, loop.Watch(listener.fd.get()));
    listeners.push_back(std::move(listener));
    Arm(listeners.back());
    return Ok();
  }

  // Listeners stay in place in their list; destroying the watch ends the waiting.
  void Arm(Listener& listener) {
    listener.watch->WhenReadable([this, &listener] { Accept(listener); });
  }

  void Accept(Listener& listener) {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      UniqueFd fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        // The waiting client stays readable: come back later instead of spinning.
        MakeRoom();
        loop.After(kPauseWithoutDescriptors, [weak = weak_self, &listener] {
          const auto self = weak.lock();
          if (self && !self->stopped && listener.watch) self->Arm(listener);
        });
        return;
      }
      if (!fd && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
      if (!fd) continue;  // that client is gone already
      Admit(listener, std::move(fd));
    }
    if (!stopped && listener.watch) Arm(listener);
  }

  void Admit(Listener& listener, UniqueFd fd) {
    Peer peer = options.for_elsewhere ? PeerElsewhere(fd.get()) : peers.Of(fd.get());
    if (!HasPlace(peer)) {
      // Best effort: a TLS client would not understand it anyway.
      (void)!::send(fd.get(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      return;
    }
    if (listener.tcp) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    auto watch = loop.Watch(fd.get());
    if (!watch) return;
    auto transport = listener.transports(fd.get());
    peer.tls = transport->is_tls();
    auto connection = std::make_shared<HttpConnection>(
        weak_self.lock(), std::move(fd), std::move(peer), std::move(transport), std::move(*watch));
    connections.push_back(connection);
    if (!sweep) ScheduleSweep();
    connection->Start(std::prev(connections.end()));
  }

  bool HasPlace(const Peer& peer) {
    const bool free = connections.size() < options.max_connections;
    if (peer.unix_socket) {
      return free || MakeRoom() || CloseOne([](const auto& of) { return of.unix_socket; });
    }
    const auto* holder = places.Find(peer);
    if (holder && holder->count >= options.max_per_peer) {
      return CloseOne([holder](const auto& of) { return &of == holder; });
    }
    const size_t reserved = std::min(options.unix_places, options.max_connections);
    return (free && places.over_tcp() < options.max_connections - reserved) || MakeRoom();
  }

  bool MakeRoom() {
    return CloseOne([](const auto& of) { return !of.unix_socket; });
  }

  // A connection that can be closed, of a holder that is `chosen`: the oldest one of the holder
  // with the most of that kind, so that a flood displaces itself.
  template <class Chosen>
  bool CloseOne(const Chosen& chosen) {
    struct Some {
      size_t count = 0;
      HttpConnection* oldest = nullptr;
    };
    for (const auto may_go : {&HttpConnection::headless, &HttpConnection::idle}) {
      std::unordered_map<const PeerPlaces::Holder*, Some> by_holder;
      Some* most = nullptr;
      for (const auto& connection : connections) {
        if (!(*connection.*may_go)() || !chosen(connection->holder())) continue;
        Some& some = by_holder[&connection->holder()];
        if (some.count++ == 0) some.oldest = connection.get();
        if (!most || some.count > most->count) most = &some;
      }
      if (!most) continue;
      most->oldest->Kill();
      return true;
    }
    return false;
  }

  // One timer for all: there are many deadlines, they move often and are rarely reached.
  void ScheduleSweep() {
    sweep = loop.After(SweepInterval(), [weak = weak_self] {
      const auto self = weak.lock();
      if (!self) return;
      self->sweep.reset();
      const auto now = std::chrono::steady_clock::now();
      for (auto next = self->connections.begin(); next != self->connections.end();) {
        const auto connection = *next++;  // it may take itself out
        connection->CheckDeadline(now);
      }
      if (!self->connections.empty() && !self->stopped) self->ScheduleSweep();
    });
  }

  std::weak_ptr<Impl> weak_self;
};

HttpServer::HttpServer(Loop& loop, Handler handler, HttpServerOptions options)
    : impl_(new Impl{{loop, options, std::move(handler), {}, {}, {}, {}, {}}, {}, {}, false, {}}) {
  impl_->weak_self = impl_;
}

HttpServer::~HttpServer() { Stop(); }

void HttpServer::SetBodyPolicy(BodyPolicyFor policy) { impl_->body_policy = std::move(policy); }

void HttpServer::SetPeerJudge(PeerJudge judge) { impl_->peer_judge = std::move(judge); }

Status HttpServer::ListenUnix(const std::string& path, mode_t mode) {
  ATHANOR_CHECK_OK(RemoveStaleSocket(path));
  ATHANOR_TRY(const auto address, UnixAddress::For(path));
  Listener listener;
  listener.fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd) return FailErrno("socket", errno);
  if (::bind(listener.fd.get(), address.get(), address.size) != 0) {
    return FailErrno("listen at " + path, errno,
                     errno == EADDRINUSE ? ErrorCode::kConflict : ErrorCode::kUnavailable);
  }
  // No one can connect before listen, so the mode is right from the first moment.
  struct stat made {};
  if (::chmod(path.c_str(), mode) != 0 || ::stat(path.c_str(), &made) != 0) {
    return FailErrno("chmod " + path, errno);
  }
  listener.unix_path = path;
  listener.inode = made.st_ino;
  listener.transports = MakePlainTransport;
  return impl_->Listen(std::move(listener));
}

namespace {

Result<Listener> BindTcp(const std::string& address, uint16_t port) {
  ATHANOR_TRY(const auto where, ParseTcpAddress(address, port));
  Listener listener;
  listener.tcp = true;
  listener.fd.reset(
      ::socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd) return FailErrno("socket", errno);
  const int on = 1;
  ::setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&where.storage), where.size) !=
      0) {
    const bool taken = errno == EADDRINUSE;
    auto failure = FailErrno("listen at " + address + " port " + std::to_string(port), errno,
                             taken ? ErrorCode::kConflict : ErrorCode::kInvalid);
    if (taken) failure.value().hint = "choose another port, or 0 for any free one";
    return failure;
  }
  return listener;
}

}  // namespace

Result<uint16_t> HttpServer::ListenTcp(const std::string& address, uint16_t port) {
  ATHANOR_TRY(auto listener, BindTcp(address, port));
  listener.transports = MakePlainTransport;
  const int fd = listener.fd.get();
  ATHANOR_CHECK_OK(impl_->Listen(std::move(listener)));
  return BoundPort(fd);
}

Result<uint16_t> HttpServer::ListenTls(const std::string& address, uint16_t port,
                                       const std::string& cert_file, const std::string& key_file) {
  ATHANOR_TRY(auto transports, MakeTlsTransports(cert_file, key_file));
  ATHANOR_TRY(auto listener, BindTcp(address, port));
  listener.transports = std::move(transports);
  const int fd = listener.fd.get();
  ATHANOR_CHECK_OK(impl_->Listen(std::move(listener)));
  return BoundPort(fd);
}

void HttpServer::StopListening() {
  for (auto& listener : impl_->listeners) listener.Close();
}

void HttpServer::Stop() {
  if (impl_->stopped) return;
  impl_->stopped = true;
  StopListening();
  if (impl_->sweep) impl_->loop.Cancel(*impl_->sweep);
  while (!impl_->connections.empty()) impl_->connections.front()->Kill();
}

size_t HttpServer::connections() const { return impl_->connections.size(); }

}  // namespace athanor
