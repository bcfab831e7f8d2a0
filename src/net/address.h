// Which addresses are on the public Internet. Callers who choose where we connect to must not reach
// anything else (this host, the local network, a cloud's metadata service, carrier-grade NAT,
// tunnels that lead back inside). Pure.
#pragma once

#include <sys/socket.h>

#include <string>

namespace athanor {

// False for addresses that are not IPv4 or IPv6, and for IPv6 addresses that contain a non-public
// IPv4 address (mapped, translated, 6to4).
bool IsPublicAddress(const sockaddr& address);
std::string AddressText(const sockaddr& address);  // "192.0.2.1", "2001:db8::1"; without the port

}  // namespace athanor
