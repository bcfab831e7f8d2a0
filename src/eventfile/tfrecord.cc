#include "eventfile/tfrecord.h"

#include <cstring>

#include "base/io/crc32c.h"

namespace athanor {
namespace {

constexpr size_t kHead = 12;
constexpr size_t kTail = 4;

uint32_t Word(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

TfRecord ReadTfRecord(std::string_view bytes) {
  TfRecord record;
  record.size = kHead;
  if (bytes.size() < kHead) return record;
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxTfRecord || MaskedCrc32c(bytes.substr(0, 8)) != Word(bytes.data() + 8)) {
    record.state = TfRecord::State::kBadLength;
    return record;
  }
  record.size = kHead + length + kTail;
  if (bytes.size() < record.size) return record;
  record.payload = bytes.substr(kHead, length);
  const bool good = MaskedCrc32c(record.payload) == Word(bytes.data() + kHead + length);
  record.state = good ? TfRecord::State::kWhole : TfRecord::State::kBadData;
  return record;
}

size_t FindTfRecord(std::string_view bytes, size_t from) {
  for (size_t at = from; at + kHead <= bytes.size(); ++at) {
    // Real lengths have an upper half of zeros: most positions fail here, without a checksum.
    if (Word(bytes.data() + at + 4) != 0) continue;
    if (ReadTfRecord(bytes.substr(at)).state != TfRecord::State::kBadLength) return at;
  }
  return std::string_view::npos;
}

void AppendTfRecord(std::string& out, std::string_view payload) {
  const uint64_t length = payload.size();
  char head[kHead];
  std::memcpy(head, &length, sizeof length);
  const uint32_t length_crc = MaskedCrc32c({head, 8});
  std::memcpy(head + 8, &length_crc, sizeof length_crc);
  out.append(head, sizeof head);
  out.append(payload);
  const uint32_t crc = MaskedCrc32c(payload);
  out.append(reinterpret_cast<const char*>(&crc), sizeof crc);
}

}  // namespace athanor
