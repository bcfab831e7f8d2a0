#include "run/isolate/forwarder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "run/isolate/links.h"

namespace athanor {
namespace {

constexpr size_t kPipe = 64 << 10;  // what a pipe holds by default
constexpr int kBacklog = 128;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Result<UniqueFd> ListenAt(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return FailErrno("make a socket", errno);
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const auto address = Loopback(port);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return FailErrno("listen at port " + std::to_string(port), errno, ErrorCode::kConflict);
  }
  return fd;
}

void DoNotWait(int fd) {
  const int on = 1;
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Result<std::unique_ptr<Forwarder>> Forwarder::Start(int space_fd,
                                                    const std::vector<uint16_t>& ports) {
  std::vector<Listener> listeners;
  // A socket stays in the namespace in which it was made.
  ATHANOR_CHECK_OK(InNetwork(space_fd, [&]() -> Status {
    for (const uint16_t port : ports) {
      ATHANOR_TRY(auto fd, ListenAt(port));
      listeners.push_back({port, std::move(fd)});
    }
    return Ok();
  }));
  std::unique_ptr<Forwarder> forwarder(new Forwarder(std::move(listeners)));
  if (!forwarder->wake_) return FailErrno("make an event", errno);
  forwarder->thread_ = std::thread([raw = forwarder.get()] { raw->Loop(); });
  return forwarder;
}

Forwarder::Forwarder(std::vector<Listener> listeners)
    : listeners_(std::move(listeners)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Forwarder::~Forwarder() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Forwarder::Accept(const Listener& listener) {
  Connection made;
  made.near.reset(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  made.far.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = Loopback(listener.port);
  // On loopback this does not wait for anyone. Without a service the connection ends at once.
  if (!made.near || !made.far ||
      ::connect(made.far.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return;
  }
  for (Flow& flow : made.flows) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    flow.read.reset(ends[0]);
    flow.write.reset(ends[1]);
  }
  made.flows[0].from = made.flows[1].to = made.near.get();
  made.flows[0].to = made.flows[1].from = made.far.get();
  DoNotWait(made.near.get());
  DoNotWait(made.far.get());
  connections_.push_back(std::move(made));
}

bool Forwarder::Pump(Flow& flow) {
  constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
  if (!flow.ended && flow.held < kPipe) {
    const auto n =
        ::splice(flow.from, nullptr, flow.write.get(), nullptr, kPipe - flow.held, kFlags);
    if (n > 0) flow.held += static_cast<size_t>(n);
    if (n == 0) flow.ended = true;
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
  }
  if (flow.held > 0) {
    const auto n = ::splice(flow.read.get(), nullptr, flow.to, nullptr, flow.held, kFlags);
    if (n > 0) flow.held -= static_cast<size_t>(n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
  }
  if (flow.ended && flow.held == 0 && !flow.passed) {
    flow.passed = true;
    (void)::shutdown(flow.to, SHUT_WR);
  }
  return true;
}

bool Forwarder::GoesOn(Connection& connection, short near, short far) {
  if ((near | far) & (POLLERR | POLLNVAL)) return false;
  for (Flow& flow : connection.flows) {
    if (!Pump(flow)) return false;
  }
  const auto& [out, in] = connection.flows;
  // Whoever hung up neither sends nor takes any more.
  if ((near & POLLHUP) && out.passed) return false;
  if ((far & POLLHUP) && in.passed) return false;
  return !(out.passed && in.passed);
}

void Forwarder::Loop() {
  for (;;) {
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
    for (const auto& listener : listeners_) fds.push_back({listener.fd.get(), POLLIN, 0});
    for (const auto& one : connections_) {
      const auto& [out, in] = one.flows;
      const auto wanted = [](const Flow& reads, const Flow& writes) {
        short events = 0;
        if (!reads.ended && reads.held < kPipe) events |= POLLIN;
        if (writes.held > 0) events |= POLLOUT;
        return events;
      };
      fds.push_back({one.near.get(), wanted(out, in), 0});
      fds.push_back({one.far.get(), wanted(in, out), 0});
    }
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    size_t at = 1 + listeners_.size();
    for (auto one = connections_.begin(); one != connections_.end(); at += 2) {
      const short near = fds[at].revents;
      const short far = fds[at + 1].revents;
      one = (near | far) == 0 || GoesOn(*one, near, far) ? std::next(one) : connections_.erase(one);
    }
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (fds[1 + i].revents != 0) Accept(listeners_[i]);
    }
  }
}

}  // namespace athanor
