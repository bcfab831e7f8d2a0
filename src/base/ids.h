// 128-bit ULIDs: 48 bits of milliseconds, 80 random; sortable by birth. Shown
// as 26 Crockford base-32 digits; MLflow sees the same bits as 32 hex digits.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace athanor {

struct Ulid {
  std::array<uint8_t, 16> bytes{};

  auto operator<=>(const Ulid&) const = default;
  bool is_zero() const;
  std::string ToString() const;  // 26 digits, lower case
  std::string ToHex() const;     // 32 digits
  static std::optional<Ulid> Parse(std::string_view text);  // either form, any case
};

// Makes ids that rise strictly within one process. Safe from any thread.
Ulid NewUlid(int64_t unix_ms);
Ulid NewUlid();  // now, by the system clock
std::string RandomHex(size_t bytes);  // from the kernel

// A type per noun, so that a job id is never passed where an attempt id is meant.
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
