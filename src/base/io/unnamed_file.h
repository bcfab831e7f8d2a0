// Files without a name: they disappear when they are closed, even if the process is killed.
//
// Threads: any.
#pragma once

#include <string>

#include "base/io/fd.h"
#include "base/result.h"

namespace athanor {

// A new one in `dir`, for reading and writing. If the file system does not support it (NFS, FUSE
// and others), a file whose name is removed at once. kExhausted, kDenied, kUnavailable: it could
// not be created.
Result<UniqueFd> UnnamedFile(const std::string& dir);

// Gives an unnamed file the name `name` below `dir_fd`, on the same file system. If that name
// exists already: kConflict. Links it if possible, otherwise copies it; synced either way. After an
// error nothing has that name.
Status NameFile(int fd, int dir_fd, const std::string& name);

}  // namespace athanor
