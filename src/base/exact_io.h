// All of some bytes at a place of a file, however many calls the kernel makes of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace athanor {

// False: it could not be read, or the file ends before.
bool ReadExactly(int fd, void* to, size_t size, uint64_t offset);
// `what` names it in an error: "write to the spool". What was written before one stays.
Status WriteExactly(int fd, const void* from, size_t size, uint64_t offset, const char* what);

}  // namespace athanor
