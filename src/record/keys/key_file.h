// A key of the server's own in a file that only its owner may read: random digits on one line, and
// on the next a checksum, as a key with one bit flipped is a key like any other.
#pragma once

#include <string>

#include "base/result.h"

namespace athanor {

// The key in `path`. kNotFound: no such file. kCorrupt: it is not as it was written.
Result<std::string> ReadKeyFile(const std::string& path);
// The same, made when there is none. A file of before there were checksums gets one.
Result<std::string> OpenKeyFile(const std::string& path);

}  // namespace athanor
