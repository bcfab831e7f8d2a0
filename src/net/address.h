// Which addresses belong to the open Internet. Everything else (this host, the local network,
// a cloud's metadata service, carrier-grade NAT, tunnels that lead back inside) is not for
// callers who choose where we connect to. Pure.
#pragma once

#include <sys/socket.h>

#include <string>

namespace athanor {

// False for what is not IPv4 or IPv6, and for IPv6 addresses that carry an IPv4 one which is
// not public (mapped, translated, 6to4).
bool IsPublicAddress(const sockaddr& address);
std::string AddressText(const sockaddr& address);  // "192.0.2.1", "2001:db8::1"; without the port

}  // namespace athanor
