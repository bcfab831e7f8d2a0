#include "track/run_place.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/text/text.h"

namespace athanor {
namespace {

constexpr char kForm = 1;  // of tokens; changes with what is in them

void Put64(std::string& out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(value >> 8 * i));
}

// Takes bytes off the front; if there are too few, it fails.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}
  bool Take(std::string_view& out, size_t size) {
    if (size > rest_.size()) return false;
    out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool Take(uint8_t& out) {
    std::string_view byte;
    if (!Take(byte, 1)) return false;
    out = static_cast<uint8_t>(byte[0]);
    return true;
  }
  bool Take(uint64_t& out) {
    std::string_view bytes;
    if (!Take(bytes, 8)) return false;
    out = 0;
    for (size_t i = 0; i < 8; ++i) out |= uint64_t{static_cast<uint8_t>(bytes[i])} << 8 * i;
    return true;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool TakeValue(Taker& from, RunPlace::Value& value) {
  uint8_t rank = 0, is_text = 0;
  uint64_t number = 0, size = 0;
  std::string_view text;
  if (!from.Take(rank) || rank > 2 || !from.Take(is_text) || !from.Take(number) ||
      !from.Take(size) || !from.Take(text, size)) {
    return false;
  }
  value.rank = static_cast<SortValue::Rank>(rank);
  value.number = std::bit_cast<double>(number);
  value.text = text;
  value.is_text = is_text != 0;
  // A token comes from outside: with NaN as a value, no order would hold.
  return value.rank != SortValue::Rank::kValue || !std::isnan(value.number);
}

bool TakePlace(Taker from, RunPlace& place) {
  uint8_t form = 0;
  uint64_t count = 0;
  if (!from.Take(form) || form != kForm || !from.Take(count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    if (!TakeValue(from, place.values.emplace_back())) return false;
  }
  uint64_t started = 0;
  std::string_view id;
  if (!from.Take(started) || !from.Take(id, place.id.value.bytes.size())) return false;
  place.started_ms = static_cast<int64_t>(started);
  std::memcpy(place.id.value.bytes.data(), id.data(), id.size());
  return from.done();
}

// Most significant first, so that the numbers compare like the texts.
uint64_t FirstBytes(std::string_view text) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) {
    key = key << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  }
  return key;
}

}  // namespace

SortValue SortValue::Number(double value) {
  return {std::isnan(value) ? Rank::kNaN : Rank::kValue, std::isnan(value) ? 0 : value, {}, false};
}

int Compare(const SortValue& a, const SortValue& b, bool ascending) {
  if (a.rank != b.rank) return a.rank < b.rank ? -1 : 1;
  if (a.rank != SortValue::Rank::kValue) return 0;
  // Numbers all have an empty text, and texts all have the number 0.
  int order = a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
  if (order == 0) order = a.text.compare(b.text);
  return ascending ? order : -order;
}

uint64_t SortKey(const SortValue& value, bool ascending) {
  // Missing and NaN share the last key: Compare tells them apart, and from what else has it.
  if (value.rank != SortValue::Rank::kValue) return UINT64_MAX;
  if (!value.is_text) return NumberSortKey(value.number, ascending);
  const uint64_t key = FirstBytes(value.text);
  return ascending ? key : ~key;
}

std::string EncodePlace(const RunPlace& place) {
  std::string bytes;
  bytes.push_back(kForm);
  Put64(bytes, place.values.size());
  for (const auto& value : place.values) {
    bytes.push_back(static_cast<char>(value.rank));
    bytes.push_back(value.is_text ? 1 : 0);
    Put64(bytes, std::bit_cast<uint64_t>(value.number));
    Put64(bytes, value.text.size());
    bytes += value.text;
  }
  Put64(bytes, static_cast<uint64_t>(place.started_ms));
  for (const uint8_t byte : place.id.value.bytes) bytes.push_back(static_cast<char>(byte));
  return Base64(bytes);
}

Result<RunPlace> DecodePlace(std::string_view token) {
  RunPlace place;
  const auto bytes = FromBase64(token);
  if (bytes && TakePlace(Taker(*bytes), place)) return place;
  return Fail(ErrorCode::kInvalid, "Invalid page token: " + Printable(token.substr(0, 200)));
}

}  // namespace athanor
