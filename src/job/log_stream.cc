#include "job/log_stream.h"

namespace athanor {

std::string_view NameOf(LogStream stream) {
  switch (stream) {
    case LogStream::kSetup:
      return "setup";
    case LogStream::kStdout:
      return "stdout";
    case LogStream::kStderr:
      return "stderr";
  }
  return "unknown";
}

}  // namespace athanor
