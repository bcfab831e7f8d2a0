#include "base/io/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace athanor {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected
constexpr size_t kSlices = 8;

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b] is the CRC of byte b followed by k zero bytes.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = before >> 8 ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t WithInstruction(std::string_view bytes, uint32_t crc) {
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t wide = crc;
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; left > 0; ++at, --left) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*at));
  return crc;
}
#endif

}  // namespace

uint32_t Crc32cPortable(std::string_view bytes, uint32_t before) {
  uint32_t crc = ~before;
  size_t i = 0;
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(bytes[at]); };
  for (; i + kSlices <= bytes.size(); i += kSlices) {
    uint32_t next = 0;
    for (size_t k = 0; k < kSlices; ++k) {
      // The first four bytes of the group are combined with the running value.
      const uint32_t index = byte(i + k) ^ (k < 4 ? crc >> (8 * k) & 0xFF : 0);
      next ^= kTables[kSlices - 1 - k][index];
    }
    crc = next;
  }
  for (; i < bytes.size(); ++i) crc = crc >> 8 ^ kTables[0][(crc ^ byte(i)) & 0xFF];
  return ~crc;
}

uint32_t Crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~WithInstruction(bytes, ~before);
#endif
  return Crc32cPortable(bytes, before);
}

uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

}  // namespace athanor
