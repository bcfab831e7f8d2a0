// Counts a server's connections by peer, so that no peer can use all of them. A peer is a user of
// this machine or a remote address (for IPv6 the /64, which belongs to one customer).
//
// Threads: one.
#pragma once

#include <map>
#include <string>

#include "net/http/http_types.h"

namespace athanor {

class PeerPlaces {
 public:
  struct Holder {
    std::string name;
    bool unix_socket = false;
    size_t count = 0;
  };

  const Holder* Find(const Peer& peer) const;  // null: it has none
  // The holder stays at its address until its last connection is released.
  Holder& Take(const Peer& peer);
  void Give(Holder& holder);
  size_t over_tcp() const { return over_tcp_; }

 private:
  std::map<std::string, Holder> holders_;
  size_t over_tcp_ = 0;
};

}  // namespace athanor
