// Any bytes as the index of a series file: it is accepted only if it is complete, and decoding and
// encoding it gives the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/io/crc32c.h"
#include "record/series/series_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace athanor;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    // A right head, so that the payload is reached.
    const uint32_t crc = Crc32c(bytes);
    bytes.insert(0, std::string(kIndexMark) + std::string(reinterpret_cast<const char*>(&crc), 4));
  }
  const auto index = DecodeIndex(bytes);
  if (!index) return 0;
  const auto again = DecodeIndex(EncodeIndex(*index));
  if (!again || again->series.size() != index->series.size()) std::abort();
  return 0;
}
