#include "net/peer_places.h"

#include <arpa/inet.h>

#include "base/text/text.h"

namespace athanor {
namespace {

std::string NameOf(const Peer& peer) {
  if (peer.unix_socket) return "unix";
  if (peer.loopback) return peer.uid ? "uid " + std::to_string(*peer.uid) : "loopback";
  if (!StartsWith(peer.address, "[")) return peer.address.substr(0, peer.address.rfind(':'));
  in6_addr whole{};
  std::string text = peer.address.substr(1, peer.address.find(']') - 1);
  if (::inet_pton(AF_INET6, text.c_str(), &whole) != 1) return text;
  return Hex({reinterpret_cast<const char*>(&whole), 8});
}

}  // namespace

const PeerPlaces::Holder* PeerPlaces::Find(const Peer& peer) const {
  const auto found = holders_.find(NameOf(peer));
  return found == holders_.end() ? nullptr : &found->second;
}

PeerPlaces::Holder& PeerPlaces::Take(const Peer& peer) {
  auto name = NameOf(peer);
  Holder& holder = holders_[name];
  if (holder.count++ == 0) {
    holder.name = std::move(name);
    holder.unix_socket = peer.unix_socket;
  }
  if (!peer.unix_socket) ++over_tcp_;
  return holder;
}

void PeerPlaces::Give(Holder& holder) {
  if (!holder.unix_socket) --over_tcp_;
  if (--holder.count == 0) holders_.erase(std::string(holder.name));
}

}  // namespace athanor
