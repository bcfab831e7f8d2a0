// A network for the hosts of one attempt that share a machine: each host has a network namespace of
// its own, whose `eth0` is one end of a pair; the other end is a port of a bridge that belongs to
// the attempt. The hosts reach each other and this machine, which has the bridge's own address, but
// nothing further: what leads further would need forwarding and NAT, which are the machine's to
// switch on, not ours.
//
//   host 0: eth0 10.213.0.2 ──┐
//   host 1: eth0 10.213.0.3 ──┴── ath1a2b3c4d, 10.213.0.1
//
// Every agent of the attempt can join first. A pair goes with its namespace, that is, when the
// host's last process ends, even if everyone is killed; a bridge that has lost all its ports is
// removed by the next one who joins or leaves any.
//
// Only for root. Threads: every call is safe from any; processes wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/io/fd.h"
#include "base/result.h"
#include "job/ids.h"

namespace athanor {

inline constexpr char kHostInterface[] = "eth0";

struct JoinedHost {
  UniqueFd space;  // the namespace: it lives as long as this, or a process in it, does
  std::vector<std::string> addresses;  // of all hosts, by index
};

// A new namespace for this host. What an earlier one left of it is removed. kDenied: not root.
// kUnavailable: the kernel has no bridges. kExhausted: no free addresses, or too many hosts.
Result<JoinedHost> JoinHosts(const AttemptId& attempt, uint32_t host, uint32_t hosts);
// The addresses, as long as a host of the attempt has joined; else kNotFound.
Result<std::vector<std::string>> AddressesOfHosts(const AttemptId& attempt, uint32_t hosts);
// Removes the host's link, and every bridge of ours without ports. Succeeds if there is none.
Status LeaveHosts(const AttemptId& attempt, uint32_t host);

// The network namespace of a process.
Result<UniqueFd> NetworkOf(int64_t pid);
// Calls `work` on a thread of its own in that namespace: sockets that it makes belong there.
Status InNetwork(int space_fd, const std::function<Status()>& work);

}  // namespace athanor
