#include "run/agent/script_line.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "base/io/fd.h"
#include "base/io/files.h"
#include "link/attempt_dir.h"
#include "net/transport.h"

namespace athanor {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr size_t kHeld = 64 << 10;  // bytes of one direction
constexpr size_t kMostConnections = 256;
constexpr int kBacklog = 128;
constexpr int kTurns = 16;  // of one connection, before the others
constexpr Millis kPortTick{500};

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Result<std::vector<Address>> AddressesOf(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed != 0) {
    return Fail(ErrorCode::kUnavailable, endpoint.ToString() + ": " + ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  std::vector<Address> all;
  for (const addrinfo* each = found; each; each = each->ai_next) {
    Address address;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    all.push_back(address);
  }
  return all;
}

// Port 0: any.
Result<UniqueFd> ListenOnLoopback(uint16_t& port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return FailErrno("make a socket", errno);
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return FailErrno("listen at port " + std::to_string(port), errno, ErrorCode::kConflict);
  }
  port = ntohs(address.sin_port);
  return fd;
}

void DoNotDelay(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// One direction: what was read and not yet written.
struct Flow {
  std::string held;
  size_t at = 0;
  bool ended = false;   // nothing more comes
  bool passed = false;  // the end was passed on

  bool has_room() const { return !ended && held.size() < kHeld; }
  bool empty() const { return at == held.size(); }
  std::string_view next() const { return std::string_view(held).substr(at); }
  void Add(const char* bytes, size_t size) { held.append(bytes, size); }
  void Written(size_t size) {
    at += size;
    if (empty()) {
      held.clear();
      at = 0;
    }
  }
};

}  // namespace

class ScriptLine::Work {
 public:
  Work(const Options& options, TransportFactory transports)
      : endpoint_(options.line.endpoint),
        transports_(std::move(transports)),
        log_(options.log),
        connect_within_(options.connect_within),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~Work() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
    if (thread_.joinable()) thread_.join();
  }

  Status Start(const std::string& port_file) {
    if (!wake_) return FailErrno("make an event", errno);
    const auto kept = ReadFile(port_file, 16);
    port_ = kept ? static_cast<uint16_t>(std::strtoul(kept->c_str(), nullptr, 10)) : 0;
    const bool first = port_ == 0;
    auto listener = ListenOnLoopback(port_);
    // The script knows only the port that was kept: Loop() waits for it.
    if (!listener && first) return Fail(listener.error());
    if (listener) listener_ = std::move(*listener);
    if (first) ATHANOR_CHECK_OK(ReplaceFile(port_file, std::to_string(port_)));
    thread_ = std::thread([this] { Loop(); });
    return Ok();
  }

  uint16_t port() const { return port_; }

 private:
  enum class Stage { kConnect, kSecure, kPass };
  struct Connection {
    UniqueFd near;
    UniqueFd far;
    std::unique_ptr<Transport> transport;  // over far
    Stage stage = Stage::kConnect;
    SteadyTime until;  // then it must have got to kPass
    size_t address = 0;
    Flow out;
    Flow in;
    // What the transport waits for, of a read and of a write: either may be the other one.
    short read_wants = POLLIN;
    short write_wants = 0;
  };

  void Loop();
  int Timeout() const;
  void Accept();
  bool Connect(Connection& one);  // to the next address; false: there is none
  bool Connected(Connection& one);
  bool Secure(Connection& one);
  bool Pass(Connection& one);
  bool GoesOn(Connection& one);
  bool MoveOut(Connection& one, bool& moved);
  bool MoveIn(Connection& one, bool& moved);
  void Failed(const std::string& why);
  static short FarEvents(const Connection& one);
  static short NearEvents(const Connection& one);

  const Endpoint endpoint_;
  const TransportFactory transports_;
  Logger& log_;
  const Millis connect_within_;
  UniqueFd wake_;
  uint16_t port_ = 0;
  // Everything below belongs to the thread.
  UniqueFd listener_;
  std::vector<Address> addresses_;  // of the server; empty: to be looked up
  std::list<Connection> connections_;
  bool told_ = false;
  std::thread thread_;
};

void ScriptLine::Work::Failed(const std::string& why) {
  addresses_.clear();  // they may have changed
  if (std::exchange(told_, true)) return;
  log_.Log(LogLevel::kWarning, "the script's clients do not reach the server", {{"why", why}});
}

void ScriptLine::Work::Accept() {
  Connection made;
  made.near.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!made.near) {
    // Without descriptors the caller stays in the queue: it is not asked for without end.
    if (errno == EMFILE || errno == ENFILE) ::poll(nullptr, 0, kPortTick.count() / 10);
    return;
  }
  DoNotDelay(made.near.get());
  if (addresses_.empty()) {
    auto found = AddressesOf(endpoint_);
    if (!found) return Failed(found.error().what);
    addresses_ = std::move(*found);
  }
  made.until = std::chrono::steady_clock::now() + connect_within_;
  if (Connect(made)) connections_.push_back(std::move(made));
}

bool ScriptLine::Work::Connect(Connection& one) {
  for (; one.address < addresses_.size(); ++one.address) {
    const auto& to = addresses_[one.address];
    one.far.reset(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!one.far) continue;
    DoNotDelay(one.far.get());
    if (::connect(one.far.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) == 0 ||
        errno == EINPROGRESS) {
      return true;
    }
  }
  Failed(endpoint_.ToString() + ": " + std::strerror(errno));
  return false;
}

bool ScriptLine::Work::Connected(Connection& one) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(one.far.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    if (++one.address < addresses_.size()) return Connect(one);
    Failed(endpoint_.ToString() + ": " + std::strerror(error));
    return false;
  }
  one.transport = transports_(one.far.get());
  one.stage = Stage::kSecure;
  return Secure(one);
}

bool ScriptLine::Work::Secure(Connection& one) {
  switch (one.transport->Handshake().io) {
    case Transport::Io::kDone:
      one.stage = Stage::kPass;
      told_ = false;
      return Pass(one);
    case Transport::Io::kWantRead:
      one.read_wants = POLLIN;
      return true;
    case Transport::Io::kWantWrite:
      one.read_wants = POLLOUT;
      return true;
    case Transport::Io::kEof:
    case Transport::Io::kError:
      break;
  }
  const auto why = one.transport->why();
  Failed((one.transport->is_stranger() ? "another server answers at " : "no TLS with ") +
         endpoint_.ToString() + (why.empty() ? "" : ": " + why));
  return false;
}

// False: it broke.
bool ScriptLine::Work::MoveOut(Connection& one, bool& moved) {
  Flow& out = one.out;
  if (out.has_room()) {
    char buffer[16 << 10];
    const ssize_t got = ::recv(one.near.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (got > 0) out.Add(buffer, static_cast<size_t>(got));
    if (got == 0) out.ended = true;
    moved = moved || got >= 0;
  }
  one.write_wants = 0;
  if (!out.empty()) {
    const auto put = one.transport->Write(out.next());
    switch (put.io) {
      case Transport::Io::kDone:
        out.Written(put.bytes);
        moved = true;
        break;
      case Transport::Io::kWantRead:
        one.write_wants = POLLIN;
        break;
      case Transport::Io::kWantWrite:
        one.write_wants = POLLOUT;
        break;
      case Transport::Io::kEof:
      case Transport::Io::kError:
        return false;
    }
  }
  if (out.ended && out.empty() && !out.passed) {
    out.passed = true;
    one.transport->EndWrites();
  }
  return true;
}

bool ScriptLine::Work::MoveIn(Connection& one, bool& moved) {
  Flow& in = one.in;
  one.read_wants = 0;
  if (in.has_room()) {
    char buffer[16 << 10];
    const auto got = one.transport->Read(buffer, sizeof buffer);
    switch (got.io) {
      case Transport::Io::kDone:
        in.Add(buffer, got.bytes);
        moved = true;
        break;
      case Transport::Io::kEof:
        in.ended = moved = true;
        break;
      case Transport::Io::kWantRead:
        one.read_wants = POLLIN;
        break;
      case Transport::Io::kWantWrite:
        one.read_wants = POLLOUT;
        break;
      case Transport::Io::kError:
        return false;
    }
  }
  if (!in.empty()) {
    const auto bytes = in.next();
    const ssize_t put = ::send(one.near.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (put > 0) in.Written(static_cast<size_t>(put));
    moved = moved || put > 0;
  }
  if (in.ended && in.empty() && !in.passed) {
    in.passed = true;
    (void)::shutdown(one.near.get(), SHUT_WR);
  }
  return true;
}

// Until nothing moves: TLS may hold bytes that poll does not report.
bool ScriptLine::Work::Pass(Connection& one) {
  bool moved = true;
  for (int turn = 0; moved && turn < kTurns; ++turn) {
    moved = false;
    if (!MoveOut(one, moved) || !MoveIn(one, moved)) return false;
  }
  // It has had its turns and comes again soon, even if only TLS knows that there is more.
  if (moved && (one.in.has_room() || !one.out.empty())) one.read_wants |= POLLOUT;
  return !(one.out.passed && one.in.passed);
}

bool ScriptLine::Work::GoesOn(Connection& one) {
  switch (one.stage) {
    case Stage::kConnect:
      return Connected(one);
    case Stage::kSecure:
      return Secure(one);
    case Stage::kPass:
      return Pass(one);
  }
  return false;
}

short ScriptLine::Work::FarEvents(const Connection& one) {
  switch (one.stage) {
    case Stage::kConnect:
      return POLLOUT;
    case Stage::kSecure:
      return one.read_wants;
    case Stage::kPass:
      break;
  }
  return static_cast<short>(one.read_wants | one.write_wants);
}

short ScriptLine::Work::NearEvents(const Connection& one) {
  if (one.stage != Stage::kPass) return 0;
  return static_cast<short>((one.out.has_room() ? POLLIN : 0) | (one.in.empty() ? 0 : POLLOUT));
}

int ScriptLine::Work::Timeout() const {
  std::optional<SteadyTime> until;
  for (const auto& one : connections_) {
    if (one.stage != Stage::kPass && (!until || one.until < *until)) until = one.until;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!listener_) until = std::min(until.value_or(now + kPortTick), now + kPortTick);
  if (!until) return -1;
  const auto left = std::chrono::ceil<Millis>(*until - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, connect_within_.count()));
}

void ScriptLine::Work::Loop() {
  for (;;) {
    if (!listener_) {
      if (auto again = ListenOnLoopback(port_)) listener_ = std::move(*again);
    }
    // Callers beyond the limit wait until one of the others is done.
    const bool full = connections_.size() >= kMostConnections;
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}, {full ? -1 : listener_.get(), POLLIN, 0}};
    for (const auto& one : connections_) {
      const short near = NearEvents(one);
      // One that waits for the other side only would be reported as hung up without end.
      fds.push_back({near == 0 ? -1 : one.near.get(), near, 0});
      const short far = FarEvents(one);
      fds.push_back({far == 0 ? -1 : one.far.get(), far, 0});
    }
    if (::poll(fds.data(), fds.size(), Timeout()) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    const auto now = std::chrono::steady_clock::now();
    size_t at = 2;
    for (auto one = connections_.begin(); one != connections_.end(); at += 2) {
      bool goes_on = true;
      if ((fds[at].revents | fds[at + 1].revents) != 0) {
        goes_on = GoesOn(*one);
      } else if (one->stage != Stage::kPass && now >= one->until) {
        Failed(endpoint_.ToString() + " does not answer");
        goes_on = false;
      }
      one = goes_on ? std::next(one) : connections_.erase(one);
    }
    if (fds[1].revents != 0) Accept();
  }
}

ScriptLine::ScriptLine(std::unique_ptr<Work> work) : work_(std::move(work)) {}
ScriptLine::~ScriptLine() = default;

Result<std::unique_ptr<ScriptLine>> ScriptLine::Start(const Options& options) {
  TransportFactory transports = MakePlainTransport;
  if (options.line.endpoint.tls) {
    ATHANOR_TRY(transports, options.line.pin.empty()
                                ? MakeTlsClientTransports(options.line.endpoint.host)
                                : MakePinnedClientTransports(options.line.pin));
  }
  auto work = std::make_unique<Work>(options, std::move(transports));
  ATHANOR_CHECK_OK(work->Start(options.port_file));
  return std::unique_ptr<ScriptLine>(new ScriptLine(std::move(work)));
}

std::string ScriptLine::url() const { return "http://127.0.0.1:" + std::to_string(work_->port()); }

Result<std::unique_ptr<ScriptLine>> LineForScript(HostPlan& plan, Logger& log) {
  auto& paths = plan.paths;
  if (paths.is_server_here()) return nullptr;
  paths.url.clear();
  paths.aws_dir = JoinPath(paths.dir, attempt_dir::kAws);
  ATHANOR_TRY(const auto line, ServerLine::Of(plan.attempt));
  auto started = ScriptLine::Start({line, JoinPath(paths.dir, attempt_dir::kServerPort), log});
  if (started) paths.url = (*started)->url();
  return started;
}

}  // namespace athanor
