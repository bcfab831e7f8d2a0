// The streams of a job's log.
#pragma once

#include <cstdint>
#include <string_view>

namespace athanor {

enum class LogStream : uint8_t { kSetup = 0, kStdout = 1, kStderr = 2 };

std::string_view NameOf(LogStream stream);  // "setup", "stdout", "stderr"

}  // namespace athanor
