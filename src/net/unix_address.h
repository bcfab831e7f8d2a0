// The address of a Unix socket, for paths of any length: sun_path holds 107
// bytes, so longer ones go through /proc/self/fd of their folder.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

struct UnixAddress {
  sockaddr_un address{};
  socklen_t size = 0;
  UniqueFd folder;  // keep until bind or connect is done

  static Result<UnixAddress> For(const std::string& path);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

}  // namespace athanor
