// The kernel's network devices, addresses and routes, by rtnetlink. By hand, because it is a few
// messages, while the `ip` program would be one more package on every machine and a process for
// each step.
//
// A socket sees the network namespace of the thread that opened it. Threads: one at a time.
// Errors: kDenied without the right, kUnavailable where the kernel cannot make such a device.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

class RouteSocket {
 public:
  struct Link {
    int index = 0;
    int master = 0;  // the bridge it is a port of; 0: none
    std::string name;
    std::string kind;  // "bridge", "veth"; empty for a card
    std::string alias;
  };
  // In the byte order of this machine.
  struct Net {
    uint32_t address = 0;
    uint8_t prefix = 0;
    int link = 0;
  };

  static Result<RouteSocket> Open();

  Result<std::vector<Link>> Links();
  Result<std::vector<Net>> Addresses();  // IPv4
  Result<std::vector<Net>> Routes();     // IPv4, where they lead to; the default route has prefix 0

  Status AddBridge(const std::string& name);
  // A pair of ends: `name` here, a port of that bridge, and `peer` in the namespace of `peer_fd`.
  Status AddPair(const std::string& name, int bridge, const std::string& peer, int peer_fd);
  Status SetAlias(int link, const std::string& alias);
  Status SetUp(int link);
  Status AddAddress(int link, uint32_t address, uint8_t prefix);
  Status AddRoute(uint32_t address, uint32_t gateway);  // to that address alone
  Status Remove(int link);                              // succeeds if it is gone

 private:
  explicit RouteSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  Status Ask(std::string message, const std::string& what);
  Result<std::vector<std::string>> Dump(uint16_t type);

  UniqueFd fd_;
  uint32_t sequence_ = 0;
};

}  // namespace athanor
