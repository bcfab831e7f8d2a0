// Data channels from folders and files of this machine. `file` copies before the start (cloning
// blocks if the file system can), so the script may write to its copy; `shared` uses the source in
// place.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "job/spec.h"

namespace athanor {

struct ChannelUse {
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// kNotFound, kDenied: the source, with its path. Symbolic links inside are copied as
// links; other special files are left out.
Result<ChannelUse> CopyChannel(const std::string& from, const std::string& to);

}  // namespace athanor
