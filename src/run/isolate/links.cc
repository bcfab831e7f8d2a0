#include "run/isolate/links.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/text/format.h"
#include "base/text/text.h"
#include "run/isolate/route_socket.h"

namespace athanor {
namespace {

// An attempt has a net of 1,022 addresses: the bridge's is 1, host 0's is 2.
constexpr uint8_t kPrefix = 22;
constexpr uint32_t kNetSize = 1u << (32 - kPrefix);
constexpr uint32_t kFirstHost = 2;
constexpr uint32_t kMostHosts = kNetSize - kFirstHost - 1;
// Where nets are looked for: a part of 10/8 that few use, and the range of RFC 2544, which is for
// tests between devices.
constexpr uint32_t kRanges[] = {0x0AD5'0000u, 0xC612'0000u};  // 10.213/16, 198.18/16
constexpr char kAlias[] = "athanor attempt ";

// Interface names have at most 15 bytes. The end of an id is random.
std::string BridgeName(const AttemptId& attempt) {
  const auto id = attempt.ToString();
  return "ath" + id.substr(id.size() - 8);
}

// At most 15 characters (IFNAMSIZ).
std::string PortName(const AttemptId& attempt, uint32_t host) {
  return fmt::format("{}-{:x}", BridgeName(attempt), host);
}

std::string Dotted(uint32_t address) {
  in_addr in{htonl(address)};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &in, text, sizeof text);
  return text;
}

std::vector<std::string> AddressesIn(uint32_t net, uint32_t hosts) {
  std::vector<std::string> all;
  for (uint32_t host = 0; host < hosts; ++host) all.push_back(Dotted(net + kFirstHost + host));
  return all;
}

uint32_t NetOf(uint32_t address) { return address & ~(kNetSize - 1); }

bool Overlap(uint32_t net, const RouteSocket::Net& other) {
  const uint8_t prefix = std::min(kPrefix, other.prefix);
  const uint32_t mask = prefix == 0 ? 0 : ~0u << (32 - prefix);
  return (net & mask) == (other.address & mask);
}

// One process at a time changes our links: the lock is on the namespace itself.
Result<UniqueFd> LockLinks() {
  UniqueFd fd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open /proc/self/ns/net", errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return FailErrno("lock this machine's network", errno);
  }
  return fd;
}

class Bridges {
 public:
  static Result<Bridges> Look() {
    ATHANOR_TRY(auto socket, RouteSocket::Open());
    ATHANOR_TRY(auto links, socket.Links());
    return Bridges(std::move(socket), std::move(links));
  }

  RouteSocket& socket() { return socket_; }

  const RouteSocket::Link* Find(const std::string& name) const {
    const auto at = std::find_if(links_.begin(), links_.end(),
                                 [&](const auto& link) { return link.name == name; });
    return at == links_.end() ? nullptr : &*at;
  }

  Status Remove(const std::string& name) {
    const auto* link = Find(name);
    if (link == nullptr) return Ok();
    ATHANOR_CHECK_OK(socket_.Remove(link->index));
    ATHANOR_TRY(links_, socket_.Links());
    return Ok();
  }

  // All of ours that no host is on, whichever attempt and home they are of.
  Status RemoveEmpty() {
    for (const auto& bridge : links_) {
      if (bridge.kind != "bridge" || !StartsWith(bridge.alias, kAlias)) continue;
      if (std::any_of(links_.begin(), links_.end(),
                      [&](const auto& link) { return link.master == bridge.index; })) {
        continue;
      }
      ATHANOR_CHECK_OK(socket_.Remove(bridge.index));
    }
    ATHANOR_TRY(links_, socket_.Links());
    return Ok();
  }

  // The net of a bridge; none: it has no address.
  Result<std::optional<uint32_t>> NetOn(int bridge) {
    ATHANOR_TRY(const auto addresses, socket_.Addresses());
    for (const auto& one : addresses) {
      if (one.link == bridge) return std::optional(NetOf(one.address));
    }
    return std::optional<uint32_t>();
  }

  // The attempt's bridge, made if it is missing, with its net.
  Result<std::pair<int, uint32_t>> Provide(const AttemptId& attempt) {
    const auto name = BridgeName(attempt);
    if (Find(name) == nullptr) {
      ATHANOR_CHECK_OK(socket_.AddBridge(name));
      ATHANOR_TRY(links_, socket_.Links());
    }
    const auto* bridge = Find(name);
    if (bridge == nullptr) return Fail(ErrorCode::kUnavailable, "the bridge " + name + " is gone");
    const int index = bridge->index;
    ATHANOR_TRY(const auto known, NetOn(index));
    if (known) return std::pair(index, *known);
    auto made = Prepare(index, attempt);
    if (!made) (void)socket_.Remove(index).ok();
    return made;
  }

 private:
  Bridges(RouteSocket socket, std::vector<RouteSocket::Link> links)
      : socket_(std::move(socket)), links_(std::move(links)) {}

  Result<std::pair<int, uint32_t>> Prepare(int index, const AttemptId& attempt) {
    ATHANOR_TRY(const uint32_t net, FreeNet());
    ATHANOR_CHECK_OK(socket_.SetAlias(index, kAlias + attempt.ToString()));
    ATHANOR_CHECK_OK(socket_.AddAddress(index, net + 1, kPrefix));
    ATHANOR_CHECK_OK(socket_.SetUp(index));
    return std::pair(index, net);
  }

  // One that no route of this machine leads to, but for the default route.
  Result<uint32_t> FreeNet() {
    ATHANOR_TRY(const auto routes, socket_.Routes());
    for (const uint32_t range : kRanges) {
      for (uint32_t net = range; net < range + 0x1'0000u; net += kNetSize) {
        if (std::none_of(routes.begin(), routes.end(), [&](const auto& route) {
              return route.prefix != 0 && Overlap(net, route);
            })) {
          return net;
        }
      }
    }
    return Fail(ErrorCode::kExhausted, "no free net of private addresses is left on this machine");
  }

  RouteSocket socket_;
  std::vector<RouteSocket::Link> links_;
};

Result<UniqueFd> NewSpace() {
  Result<UniqueFd> space = UniqueFd();
  // A thread can have another network than its process.
  std::thread([&space] {
    if (::unshare(CLONE_NEWNET) != 0) {
      space = Fail(errno == EPERM ? ErrorCode::kDenied : ErrorCode::kUnavailable,
                   std::string("make a network namespace: ") + std::strerror(errno));
      return;
    }
    space = UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!*space) space = FailErrno("open /proc/thread-self/ns/net", errno);
  }).join();
  return space;
}

// `machine`: this machine's own addresses, which are reached through the bridge.
Status SetUpInside(int space_fd, uint32_t address, const std::vector<RouteSocket::Net>& machine) {
  return InNetwork(space_fd, [&]() -> Status {
    ATHANOR_TRY(auto socket, RouteSocket::Open());
    const auto loopback = static_cast<int>(::if_nametoindex("lo"));
    const auto eth = static_cast<int>(::if_nametoindex(kHostInterface));
    ATHANOR_CHECK_OK(socket.SetUp(loopback));
    ATHANOR_CHECK_OK(socket.AddAddress(eth, address, kPrefix));
    ATHANOR_CHECK_OK(socket.SetUp(eth));
    for (const auto& own : machine) {
      if (own.address >> 24 == 127 || NetOf(own.address) == NetOf(address)) continue;
      ATHANOR_CHECK_OK(socket.AddRoute(own.address, NetOf(address) + 1));
    }
    return Ok();
  });
}

}  // namespace

Result<JoinedHost> JoinHosts(const AttemptId& attempt, uint32_t host, uint32_t hosts) {
  if (hosts > kMostHosts || host >= hosts) {
    return Fail(ErrorCode::kExhausted,
                "a network of one machine has room for " + std::to_string(kMostHosts) + " hosts");
  }
  ATHANOR_TRY(const UniqueFd lock, LockLinks());
  ATHANOR_TRY(auto bridges, Bridges::Look());
  ATHANOR_TRY(auto space, NewSpace());
  ATHANOR_CHECK_OK(bridges.Remove(PortName(attempt, host)));
  ATHANOR_TRY(const auto bridge, bridges.Provide(attempt));
  const auto [index, net] = bridge;
  auto& socket = bridges.socket();
  ATHANOR_CHECK_OK(socket.AddPair(PortName(attempt, host), index, kHostInterface, space.get()));
  ATHANOR_TRY(const auto machine, socket.Addresses());
  ATHANOR_CHECK_OK(SetUpInside(space.get(), net + kFirstHost + host, machine));
  ATHANOR_CHECK_OK(
      socket.SetUp(static_cast<int>(::if_nametoindex(PortName(attempt, host).c_str()))));
  JoinedHost joined{std::move(space), AddressesIn(net, hosts)};
  // Of those that were killed with all their hosts.
  ATHANOR_TRY(auto now, Bridges::Look());
  (void)now.RemoveEmpty().ok();
  return joined;
}

Result<std::vector<std::string>> AddressesOfHosts(const AttemptId& attempt, uint32_t hosts) {
  ATHANOR_TRY(auto bridges, Bridges::Look());
  const auto* bridge = bridges.Find(BridgeName(attempt));
  if (bridge == nullptr) return Fail(ErrorCode::kNotFound, "no host of the attempt has joined");
  ATHANOR_TRY(const auto net, bridges.NetOn(bridge->index));
  if (!net) return Fail(ErrorCode::kNotFound, "no host of the attempt has joined");
  return AddressesIn(*net, hosts);
}

Status LeaveHosts(const AttemptId& attempt, uint32_t host) {
  ATHANOR_TRY(const UniqueFd lock, LockLinks());
  ATHANOR_TRY(auto bridges, Bridges::Look());
  ATHANOR_CHECK_OK(bridges.Remove(PortName(attempt, host)));
  return bridges.RemoveEmpty();
}

Result<UniqueFd> NetworkOf(int64_t pid) {
  const auto path = "/proc/" + std::to_string(pid) + "/ns/net";
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno("open " + path, errno);
  return fd;
}

Status InNetwork(int space_fd, const std::function<Status()>& work) {
  Status done = Ok();
  std::thread([&] {
    if (::setns(space_fd, CLONE_NEWNET) != 0) {
      done = FailErrno("enter a network namespace", errno);
    } else {
      done = work();
    }
  }).join();
  return done;
}

}  // namespace athanor
