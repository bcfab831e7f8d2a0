// Any bytes as a log of SQLite. The walk ends, what is repaired is valid when it is walked again,
// and nothing that SQLite would apply is left out.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "record/db/log_walk.h"

namespace {

athanor::LogWalk Walk(const std::string& bytes) {
  const auto walk = athanor::WalkLog([&](uint64_t at, size_t size) -> athanor::Result<std::string> {
    return at < bytes.size() ? bytes.substr(at, size) : std::string();
  });
  if (!walk) std::abort();
  return *walk;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const LogWalk walk = Walk(bytes);
  if (walk.kept > walk.frames.size()) std::abort();
  for (const auto& patch : walk.patches) {
    if (patch.at + patch.bytes.size() > bytes.size()) std::abort();
    bytes.replace(patch.at, patch.bytes.size(), patch.bytes);
  }
  const LogWalk again = Walk(bytes);
  if (!walk.header_sound) return 0;
  if (!again.header_sound || again.kept < walk.kept || !again.patches.empty()) std::abort();
  return 0;
}
