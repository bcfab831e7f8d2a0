// The wire format of protocol buffers, as far as TensorBoard's messages need it: a reader that
// walks the fields of a message in place, and functions that append fields. No schema, no
// allocation, no library; any bytes are accepted.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace athanor::proto {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t raw = 0;        // of varints and fixed numbers
  std::string_view bytes;  // of strings, messages and packed numbers

  double AsDouble() const {
    double value;
    std::memcpy(&value, &raw, sizeof value);
    return value;
  }
  float AsFloat() const {
    const auto low = static_cast<uint32_t>(raw);
    float value;
    std::memcpy(&value, &low, sizeof value);
    return value;
  }
  int64_t AsInt() const { return static_cast<int64_t>(raw); }
};

// Takes a varint off the front; false if it does not end.
inline bool TakeVarint(std::string_view& in, uint64_t& value) {
  if (!in.empty() && static_cast<signed char>(in.front()) >= 0) {
    value = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    return true;
  }
  value = 0;
  for (size_t i = 0; i < in.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(in[i]);
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      in.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

// Takes the next field off the front of a message. False at its end, and when the rest is not
// a field: then `in` is not empty.
inline bool TakeField(std::string_view& in, Field& field) {
  if (in.empty()) return false;
  std::string_view rest = in;
  uint64_t key = 0;
  if (!TakeVarint(rest, key)) return false;
  field.number = static_cast<uint32_t>(key >> 3);
  field.type = static_cast<WireType>(key & 7);
  if (field.number == 0) return false;
  if (field.type == WireType::kBytes) {
    uint64_t size = 0;
    if (!TakeVarint(rest, size) || size > rest.size()) return false;
    field.bytes = rest.substr(0, size);
    rest.remove_prefix(size);
  } else if (field.type == WireType::kVarint) {
    if (!TakeVarint(rest, field.raw)) return false;
  } else if (field.type == WireType::kFixed64) {
    if (rest.size() < 8) return false;
    std::memcpy(&field.raw, rest.data(), 8);
    rest.remove_prefix(8);
  } else if (field.type == WireType::kFixed32) {
    if (rest.size() < 4) return false;
    uint32_t low = 0;
    std::memcpy(&low, rest.data(), 4);
    field.raw = low;
    rest.remove_prefix(4);
  } else {
    return false;
  }
  in = rest;
  return true;
}

inline void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
inline void PutKey(std::string& out, uint32_t number, WireType type) {
  PutVarint(out, static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(type));
}
inline void PutInt(std::string& out, uint32_t number, int64_t value) {
  PutKey(out, number, WireType::kVarint);
  PutVarint(out, static_cast<uint64_t>(value));
}
inline void PutDouble(std::string& out, uint32_t number, double value) {
  PutKey(out, number, WireType::kFixed64);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void PutFloat(std::string& out, uint32_t number, float value) {
  PutKey(out, number, WireType::kFixed32);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void PutBytes(std::string& out, uint32_t number, std::string_view bytes) {
  PutKey(out, number, WireType::kBytes);
  PutVarint(out, bytes.size());
  out.append(bytes);
}

}  // namespace athanor::proto
