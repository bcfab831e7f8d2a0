// Counts a server's connections by who has them, so that nobody can take the places of all: a user
// of this machine, or an address elsewhere (of IPv6 the /64, which is one customer's).
//
// Threads: one.
#pragma once

#include <map>
#include <string>

#include "net/http_types.h"

namespace athanor {

class PeerPlaces {
 public:
  struct Holder {
    std::string name;
    bool unix_socket = false;
    size_t count = 0;
  };

  const Holder* Find(const Peer& peer) const;  // null: it has none
  // The holder stays where it is until its last place is given back.
  Holder& Take(const Peer& peer);
  void Give(Holder& holder);
  size_t over_tcp() const { return over_tcp_; }

 private:
  std::map<std::string, Holder> holders_;
  size_t over_tcp_ = 0;
};

}  // namespace athanor
