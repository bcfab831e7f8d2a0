// The digests that object clients know: MD5 (the ETag), SHA-256 of a signed body, and the
// checksums of the x-amz-checksum-* headers. Computed together in one pass.
// Plain values; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

enum class ChecksumKind { kCrc32, kCrc32c, kCrc64Nvme, kSha1, kSha256 };

std::string_view NameOf(ChecksumKind kind);  // "CRC32", as the x-amz-checksum-algorithm header
std::optional<ChecksumKind> ChecksumNamed(std::string_view name);  // any case

struct DigestPlan {
  bool sha256 = false;
  std::optional<ChecksumKind> checksum;
};

struct Digests {
  std::string md5;       // 16 bytes
  std::string sha256;    // hex; empty unless planned
  std::string checksum;  // raw bytes, most significant first; empty unless planned
};

class Digester {
 public:
  explicit Digester(const DigestPlan& plan);
  ~Digester();
  void Update(std::string_view bytes);
  Digests Finish();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Md5(std::string_view bytes);                          // 16 bytes
std::string Checksum(ChecksumKind kind, std::string_view bytes);  // raw bytes
uint64_t Crc64Nvme(std::string_view bytes, uint64_t before = 0);
// The CRC of two strings, from their CRCs and the length of the second. Only for the CRC kinds;
// empty for the others, or if the sizes are wrong.
std::string CombineCrc(ChecksumKind kind, std::string_view first, std::string_view second,
                       uint64_t second_size);

}  // namespace athanor
