#include "net/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace athanor {
namespace {

struct Ends {
  sockaddr_storage local{};
  sockaddr_storage remote{};
};

const sockaddr_in& V4(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}
const sockaddr_in6& V6(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}

// A v6 listener sees v4 clients as ::ffff:a.b.c.d; their own socket is plain v4.
void UnmapV4(sockaddr_storage& address) {
  if (address.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&V6(address).sin6_addr)) return;
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  plain.sin_port = V6(address).sin6_port;
  std::memcpy(&plain.sin_addr, &V6(address).sin6_addr.s6_addr[12], 4);
  address = {};
  std::memcpy(&address, &plain, sizeof plain);
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return (ntohl(V4(address).sin_addr.s_addr) >> 24) == 127;
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&V6(address).sin6_addr);
}

std::string Text(const sockaddr_storage& address) {
  char buffer[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &V4(address).sin_addr, buffer, sizeof buffer);
    return std::string(buffer) + ":" + std::to_string(ntohs(V4(address).sin_port));
  }
  if (address.ss_family != AF_INET6) return "unknown";
  ::inet_ntop(AF_INET6, &V6(address).sin6_addr, buffer, sizeof buffer);
  return "[" + std::string(buffer) + "]:" + std::to_string(ntohs(V6(address).sin6_port));
}

// The connection as the client's kernel socket names it: its source is our remote end.
inet_diag_sockid ClientSocketId(const Ends& ends) {
  inet_diag_sockid id{};
  if (ends.remote.ss_family == AF_INET) {
    id.idiag_sport = V4(ends.remote).sin_port;
    id.idiag_dport = V4(ends.local).sin_port;
    id.idiag_src[0] = V4(ends.remote).sin_addr.s_addr;
    id.idiag_dst[0] = V4(ends.local).sin_addr.s_addr;
  } else {
    id.idiag_sport = V6(ends.remote).sin6_port;
    id.idiag_dport = V6(ends.local).sin6_port;
    std::memcpy(id.idiag_src, &V6(ends.remote).sin6_addr, 16);
    std::memcpy(id.idiag_dst, &V6(ends.local).sin6_addr, 16);
  }
  id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return id;
}

struct Owner {
  uint32_t uid = 0;
  uint64_t inode = 0;
};

std::optional<Owner> OwnerFromReply(const char* bytes, size_t size, uint16_t client_port) {
  const auto* header = reinterpret_cast<const nlmsghdr*>(bytes);
  if (!NLMSG_OK(header, size) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) {
    return std::nullopt;
  }
  inet_diag_msg found;
  std::memcpy(&found, NLMSG_DATA(header), sizeof found);
  // The kernel reports uid 0 for sockets without an owner (closed by their
  // process, in TIME_WAIT) and may offer a listening one: neither is the client.
  if (found.idiag_inode == 0 || found.idiag_state == TCP_LISTEN) return std::nullopt;
  if (found.id.idiag_sport != client_port) return std::nullopt;
  return Owner{found.idiag_uid, found.idiag_inode};
}

std::optional<Owner> OwnerOfClient(int netlink, const Ends& ends) {
  struct {
    nlmsghdr header{};
    inet_diag_req_v2 body{};
  } question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<uint8_t>(ends.remote.ss_family);
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~0U;
  question.body.id = ClientSocketId(ends);
  if (::send(netlink, &question, sizeof question, MSG_DONTWAIT) < 0) return std::nullopt;
  // The kernel answers within send, so there is nothing to wait for.
  alignas(nlmsghdr) std::array<char, 1024> reply;
  const ssize_t size = ::recv(netlink, reply.data(), reply.size(), MSG_DONTWAIT);
  if (size <= 0) return std::nullopt;
  return OwnerFromReply(reply.data(), static_cast<size_t>(size), question.body.id.idiag_sport);
}

}  // namespace

Peer PeerElsewhere(int socket_fd) {
  Peer peer;
  peer.elsewhere = true;
  sockaddr_storage remote{};
  socklen_t size = sizeof remote;
  if (::getpeername(socket_fd, reinterpret_cast<sockaddr*>(&remote), &size) == 0) {
    UnmapV4(remote);
    peer.address = Text(remote);
  }
  return peer;
}

Peer PeerLookup::Of(int socket_fd) {
  Peer peer;
  Ends ends;
  socklen_t local_size = sizeof ends.local;
  socklen_t remote_size = sizeof ends.remote;
  if (::getsockname(socket_fd, reinterpret_cast<sockaddr*>(&ends.local), &local_size) != 0) {
    return peer;
  }
  if (ends.local.ss_family == AF_UNIX) {
    peer.unix_socket = true;
    peer.address = "unix";
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
      peer.uid = credentials.uid;
      peer.pid = credentials.pid;
    }
    return peer;
  }
  if (::getpeername(socket_fd, reinterpret_cast<sockaddr*>(&ends.remote), &remote_size) != 0) {
    return peer;
  }
  UnmapV4(ends.local);
  UnmapV4(ends.remote);
  peer.address = Text(ends.remote);
  peer.loopback = IsLoopback(ends.local) && IsLoopback(ends.remote);
  if (!peer.loopback) return peer;
  if (!netlink_) {
    netlink_.reset(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!netlink_) return peer;
  }
  if (const auto owner = OwnerOfClient(netlink_.get(), ends)) {
    peer.uid = owner->uid;
    peer.inode = owner->inode;
  }
  return peer;
}

}  // namespace athanor
