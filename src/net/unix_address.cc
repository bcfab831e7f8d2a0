#include "net/unix_address.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/io/files.h"

namespace athanor {

Result<UnixAddress> UnixAddress::For(const std::string& path) {
  UnixAddress result;
  std::string name = path;
  if (path.empty() || path.find('\0') != std::string::npos) {
    return Fail(ErrorCode::kInvalid, "a socket needs a path");
  }
  if (name.size() >= sizeof(result.address.sun_path)) {
    const std::string folder = DirName(path);
    result.folder.reset(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!result.folder) return FailErrno("open " + folder, errno);
    name = "/proc/self/fd/" + std::to_string(result.folder.get()) + "/" + BaseName(path);
    if (name.size() >= sizeof(result.address.sun_path)) {
      return Fail(ErrorCode::kInvalid, "the name of the socket " + path + " is too long");
    }
  }
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path, name.data(), name.size());
  result.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
  return result;
}

}  // namespace athanor
