// Reads or writes all of the given bytes at an offset of a file, in as many system calls as it
// takes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace athanor {

// False: it could not be read, or the file is too short.
bool ReadExactly(int fd, void* to, size_t size, uint64_t offset);
// `what` names the action in an error: "write to the spool". Bytes that were written before the
// error stay.
Status WriteExactly(int fd, const void* from, size_t size, uint64_t offset, const char* what);

}  // namespace athanor
