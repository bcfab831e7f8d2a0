#include "base/io/exact_io.h"

#include <unistd.h>

#include <cerrno>

namespace athanor {

bool ReadExactly(int fd, void* to, size_t size, uint64_t offset) {
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = ::pread(fd, out, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return true;
}

Status WriteExactly(int fd, const void* from, size_t size, uint64_t offset, const char* what) {
  const auto* in = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t put = ::pwrite(fd, in, size, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return FailErrno(what, errno);
    in += put;
    offset += static_cast<uint64_t>(put);
    size -= static_cast<size_t>(put);
  }
  return Ok();
}

}  // namespace athanor
