// CRC-32C (Castagnoli), as iSCSI, ext4 and TensorBoard's event files use it.
#pragma once

#include <cstdint>
#include <string_view>

namespace athanor {

// Of `bytes`, or of the bytes of `before` followed by these. Uses the processor's instruction if
// there is one.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);
// The same by table only; what Crc32c falls back to.
uint32_t Crc32cPortable(std::string_view bytes, uint32_t before = 0);
// How TFRecord files store it, so that a CRC of bytes that contain CRCs stays strong.
uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace athanor
