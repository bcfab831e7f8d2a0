#include "base/io/folder_hints.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "base/io/fd.h"

namespace athanor {

void SpreadSubfolders(const std::string& dir) {
  const UniqueFd fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;  // of this size, whatever the type in the request's number says
  if (!fd || ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  if ((flags & FS_TOPDIR_FL) != 0) return;
  flags |= FS_TOPDIR_FL;
  (void)::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags);
}

}  // namespace athanor
