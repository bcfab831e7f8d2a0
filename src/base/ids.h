// 128-bit ULIDs: 48 bits of milliseconds, 80 random; sortable by creation time. Shown as 26
// Crockford base-32 digits; MLflow sees the same bits as 32 hex digits.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

struct Ulid {
  std::array<uint8_t, 16> bytes{};

  bool operator==(const Ulid&) const = default;
  // The same order as comparing bytes, but without a call for each step of a search in a map.
  std::strong_ordering operator<=>(const Ulid& other) const {
    const uint64_t mine = Half(0), theirs = other.Half(0);
    return mine != theirs ? mine <=> theirs : Half(8) <=> other.Half(8);
  }
  bool is_zero() const;
  std::string ToString() const;                             // 26 digits, lower case
  std::string ToHex() const;                                // 32 digits
  static std::optional<Ulid> Parse(std::string_view text);  // either form, any case

 private:
  uint64_t Half(size_t from) const {
    uint64_t half = 0;
    std::memcpy(&half, bytes.data() + from, sizeof(half));
    return std::endian::native == std::endian::little ? __builtin_bswap64(half) : half;
  }
};

// Makes ids that strictly increase within one process. Safe from any thread.
Ulid NewUlid(int64_t unix_ms);
Ulid NewUlid();                       // now, by the system clock
std::string RandomHex(size_t bytes);  // from the kernel

// One type per noun, so that a job id cannot be passed where an attempt id is meant.
template <class Tag>
struct Id {
  Ulid value;

  auto operator<=>(const Id&) const = default;
  std::string ToString() const { return value.ToString(); }
  bool is_zero() const { return value.is_zero(); }
  static Id New() { return Id{NewUlid()}; }
  static std::optional<Id> Parse(std::string_view text) {
    auto parsed = Ulid::Parse(text);
    if (!parsed) return std::nullopt;
    return Id{*parsed};
  }
};

}  // namespace athanor
