// OpenSSL's plain functions rather than its EVP layer; see base/io/hash.cc.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "record/objects/digests.h"

#include <openssl/md5.h>
#include <openssl/sha.h>
#include <zlib.h>

#include <array>

#include "base/io/crc32c.h"
#include "base/io/hash.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr std::pair<ChecksumKind, std::string_view> kNames[] = {
    {ChecksumKind::kCrc32, "CRC32"},         {ChecksumKind::kCrc32c, "CRC32C"},
    {ChecksumKind::kCrc64Nvme, "CRC64NVME"}, {ChecksumKind::kSha1, "SHA1"},
    {ChecksumKind::kSha256, "SHA256"},
};

// Reflected polynomials.
constexpr uint64_t kCrc32Poly = 0xedb88320;
constexpr uint64_t kCrc32cPoly = 0x82f63b78;
constexpr uint64_t kCrc64Poly = 0x9a6c9329ac4bc9b5;

using Table64 = std::array<std::array<uint64_t, 256>, 8>;

constexpr Table64 MakeTable64() {
  Table64 table{};
  for (uint64_t i = 0; i < 256; ++i) {
    uint64_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kCrc64Poly : 0);
    table[0][i] = crc;
  }
  for (size_t slice = 1; slice < 8; ++slice) {
    for (size_t i = 0; i < 256; ++i) {
      const uint64_t before = table[slice - 1][i];
      table[slice][i] = table[0][before & 0xff] ^ (before >> 8);
    }
  }
  return table;
}
constexpr Table64 kTable64 = MakeTable64();

std::string BigEndian(uint64_t value, size_t size) {
  std::string out(size, '\0');
  for (size_t i = 0; i < size; ++i) out[size - 1 - i] = static_cast<char>(value >> (8 * i));
  return out;
}

uint64_t FromBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// A linear map over GF(2): column i is the image of bit i.
using Matrix = std::array<uint64_t, 64>;

uint64_t Times(const Matrix& matrix, uint64_t vector) {
  uint64_t sum = 0;
  for (size_t i = 0; vector != 0; ++i, vector >>= 1) {
    if (vector & 1) sum ^= matrix[i];
  }
  return sum;
}

Matrix Squared(const Matrix& matrix, int bits) {
  Matrix square{};
  for (int i = 0; i < bits; ++i)
    square[static_cast<size_t>(i)] = Times(matrix, matrix[static_cast<size_t>(i)]);
  return square;
}

// `crc` followed by `zeros` zero bytes, without the pre- and post-inversion.
uint64_t Shifted(uint64_t crc, uint64_t poly, int bits, uint64_t zeros) {
  Matrix step{};  // one zero bit
  step[0] = poly;
  for (int i = 1; i < bits; ++i) step[static_cast<size_t>(i)] = uint64_t{1} << (i - 1);
  for (int i = 0; i < 3; ++i) step = Squared(step, bits);  // one zero byte
  for (; zeros != 0; zeros >>= 1) {
    if (zeros & 1) crc = Times(step, crc);
    if (zeros > 1) step = Squared(step, bits);
  }
  return crc;
}

}  // namespace

std::string_view NameOf(ChecksumKind kind) {
  for (const auto& [known, name] : kNames) {
    if (known == kind) return name;
  }
  return "";
}

std::optional<ChecksumKind> ChecksumNamed(std::string_view name) {
  const std::string upper = ToUpper(name);
  for (const auto& [kind, known] : kNames) {
    if (known == upper) return kind;
  }
  return std::nullopt;
}

uint64_t Crc64Nvme(std::string_view bytes, uint64_t before) {
  uint64_t crc = ~before;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    for (int i = 0; i < 8; ++i) crc ^= static_cast<uint64_t>(at[i]) << (8 * i);
    uint64_t next = 0;
    for (size_t i = 0; i < 8; ++i) next ^= kTable64[7 - i][(crc >> (8 * i)) & 0xff];
    crc = next;
  }
  for (; left > 0; --left, ++at) crc = kTable64[0][(crc ^ *at) & 0xff] ^ (crc >> 8);
  return ~crc;
}

struct Digester::State {
  DigestPlan plan;
  MD5_CTX md5;
  Sha256 sha256;
  SHA_CTX sha1;
  Sha256 checksum_sha256;
  uint32_t crc32 = 0;
  uint64_t crc64 = 0;

  void UpdateChecksum(std::string_view bytes) {
    switch (*plan.checksum) {
      case ChecksumKind::kCrc32:
        crc32 = static_cast<uint32_t>(
            crc32_z(crc32, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
        return;
      case ChecksumKind::kCrc32c:
        crc32 = Crc32c(bytes, crc32);
        return;
      case ChecksumKind::kCrc64Nvme:
        crc64 = Crc64Nvme(bytes, crc64);
        return;
      case ChecksumKind::kSha1:
        SHA1_Update(&sha1, bytes.data(), bytes.size());
        return;
      case ChecksumKind::kSha256:
        if (!plan.sha256) checksum_sha256.Update(bytes);
        return;
    }
  }

  std::string FinishChecksum(const std::string& sha256_hex) {
    switch (*plan.checksum) {
      case ChecksumKind::kCrc32:
      case ChecksumKind::kCrc32c:
        return BigEndian(crc32, 4);
      case ChecksumKind::kCrc64Nvme:
        return BigEndian(crc64, 8);
      case ChecksumKind::kSha1: {
        std::string out(SHA_DIGEST_LENGTH, '\0');
        SHA1_Final(reinterpret_cast<unsigned char*>(out.data()), &sha1);
        return out;
      }
      case ChecksumKind::kSha256: {
        const std::string hex = plan.sha256 ? sha256_hex : checksum_sha256.HexDigest();
        std::string out;
        const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
        for (size_t i = 0; i + 1 < hex.size(); i += 2) {
          out += static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1]));
        }
        return out;
      }
    }
    return {};
  }
};

Digester::Digester(const DigestPlan& plan) : state_(std::make_unique<State>()) {
  state_->plan = plan;
  MD5_Init(&state_->md5);
  SHA1_Init(&state_->sha1);
}
Digester::~Digester() = default;

void Digester::Update(std::string_view bytes) {
  MD5_Update(&state_->md5, bytes.data(), bytes.size());
  if (state_->plan.sha256) state_->sha256.Update(bytes);
  if (state_->plan.checksum) state_->UpdateChecksum(bytes);
}

Digests Digester::Finish() {
  Digests made;
  made.md5.resize(MD5_DIGEST_LENGTH);
  MD5_Final(reinterpret_cast<unsigned char*>(made.md5.data()), &state_->md5);
  if (state_->plan.sha256) made.sha256 = state_->sha256.HexDigest();
  if (state_->plan.checksum) made.checksum = state_->FinishChecksum(made.sha256);
  return made;
}

std::string Md5(std::string_view bytes) {
  Digester digester({});
  digester.Update(bytes);
  return digester.Finish().md5;
}

std::string Checksum(ChecksumKind kind, std::string_view bytes) {
  Digester digester({false, kind});
  digester.Update(bytes);
  return digester.Finish().checksum;
}

std::string CombineCrc(ChecksumKind kind, std::string_view first, std::string_view second,
                       uint64_t second_size) {
  uint64_t poly = kCrc32Poly;
  switch (kind) {
    case ChecksumKind::kCrc32:
      break;
    case ChecksumKind::kCrc32c:
      poly = kCrc32cPoly;
      break;
    case ChecksumKind::kCrc64Nvme:
      poly = kCrc64Poly;
      break;
    case ChecksumKind::kSha1:
    case ChecksumKind::kSha256:
      return {};
  }
  const size_t size = kind == ChecksumKind::kCrc64Nvme ? 8 : 4;
  if (first.size() != size || second.size() != size) return {};
  // The inversions before and after cancel out.
  const uint64_t moved =
      Shifted(FromBigEndian(first), poly, static_cast<int>(size * 8), second_size);
  return BigEndian(moved ^ FromBigEndian(second), size);
}

}  // namespace athanor
