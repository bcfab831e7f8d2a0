// For fuzz targets of series files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/io/crc32c.h"

namespace athanor {

// Frames with right lengths and checksums around pieces of the input, so that payloads are reached.
inline std::string FramedPieces(std::string_view bytes) {
  std::string frames;
  while (bytes.size() > 1) {
    const auto payload = bytes.substr(1, static_cast<uint8_t>(bytes.front()));
    const auto length = static_cast<uint32_t>(payload.size());
    const uint32_t crc = Crc32c(payload);
    frames.append(reinterpret_cast<const char*>(&length), 4);
    frames.append(reinterpret_cast<const char*>(&crc), 4);
    frames += payload;
    bytes.remove_prefix(1 + payload.size());
  }
  return frames;
}

}  // namespace athanor
