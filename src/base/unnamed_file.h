// Files without a name: they are gone when they are closed, whatever ends the process.
//
// Threads: any.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace athanor {

// A new one in `dir`, to be read and written. Where the file system makes none (NFS, FUSE and
// others), one whose name is removed at once. kExhausted, kDenied, kUnavailable: there is none.
Result<UniqueFd> UnnamedFile(const std::string& dir);

// Gives what an unnamed file holds the name `name` below `dir_fd`, of the same file system, which
// nothing may have yet (kConflict). Linked where that can be, else copied; synced either way. After
// an error there is nothing of that name.
Status NameFile(int fd, int dir_fd, const std::string& name);

}  // namespace athanor
