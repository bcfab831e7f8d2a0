// Who is connected to an accepted socket, according to the kernel: Unix peers by SO_PEERCRED,
// loopback TCP peers by asking NETLINK_SOCK_DIAG for the owner of the client's end of the
// connection.
#pragma once

#include "base/io/fd.h"
#include "net/http/http_types.h"

namespace athanor {

// Someone of another machine, or taken for that: only the address is known.
Peer PeerElsewhere(int socket_fd);

class PeerLookup {
 public:
  // Never fails: what cannot be found out is left empty. A client that has already closed its end
  // has no owner, so it has no uid.
  Peer Of(int socket_fd);

 private:
  UniqueFd netlink_;  // opened at the first question
};

}  // namespace athanor
