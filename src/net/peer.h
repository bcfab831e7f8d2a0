// Who is at the other end of an accepted socket, as the kernel knows it: Unix
// peers by SO_PEERCRED, loopback TCP peers by asking NETLINK_SOCK_DIAG for the
// owner of the client's end of the connection.
#pragma once

#include "base/fd.h"
#include "net/http_types.h"

namespace athanor {

class PeerLookup {
 public:
  // Never fails: what cannot be found out is left empty. A client that has
  // already closed its end has no owner any more, hence no uid.
  Peer Of(int socket_fd);

 private:
  UniqueFd netlink_;  // opened at the first question
};

}  // namespace athanor
