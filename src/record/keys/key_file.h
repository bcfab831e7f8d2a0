// A key of the server in a file that only its owner may read: random digits on one line, and a
// checksum on the next, because a key with one flipped bit looks like any other key.
#pragma once

#include <string>

#include "base/result.h"

namespace athanor {

// The key in `path`. kNotFound: no such file. kCorrupt: it is damaged.
Result<std::string> ReadKeyFile(const std::string& path);
// The same; created if there is none. A file without a checksum gets one.
Result<std::string> OpenKeyFile(const std::string& path);

}  // namespace athanor
