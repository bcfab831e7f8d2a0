// The framing of event files (TFRecord): u64 length, masked crc32c of the length's bytes,
// payload, masked crc32c of the payload; little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace athanor {

// A length beyond this counts as damage, whatever its checksum says.
inline constexpr uint64_t kMaxTfRecord = 1ull << 30;

struct TfRecord {
  enum class State {
    kWhole,
    kTorn,       // the bytes end before the record does: maybe not written yet
    kBadLength,  // its checksum is wrong: the start of the next record is unknown
    kBadData,    // its bytes are not what was written; the next record follows
  };
  State state = State::kTorn;
  std::string_view payload;  // when whole
  size_t size = 0;           // of the record with its frame; if torn, of what is needed so far
};

// The record at the front of `bytes`.
TfRecord ReadTfRecord(std::string_view bytes);
// Position of the next length with a right checksum, at `from` or later; npos: in none of the
// positions that have enough bytes after them to decide.
size_t FindTfRecord(std::string_view bytes, size_t from);
void AppendTfRecord(std::string& out, std::string_view payload);

}  // namespace athanor
