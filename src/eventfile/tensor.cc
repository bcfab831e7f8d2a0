#include "eventfile/tensor.h"

#include <cmath>
#include <cstring>

#include "eventfile/proto.h"

namespace athanor {
namespace {

using proto::Field;
using proto::TakeField;
using proto::TakeVarint;
using proto::WireType;

constexpr uint64_t kMaxElements = 1ull << 40;
// A few bytes may name a shape of any size and one value for all of it.
constexpr uint64_t kMaxFill = 1u << 20;

double FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return bits & 0x8000 ? -value : value;
}

double FromBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

template <class T>
void TakeAll(std::string_view content, std::vector<double>& numbers) {
  for (size_t at = 0; at + sizeof(T) <= content.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, content.data() + at, sizeof value);
    numbers.push_back(static_cast<double>(value));
  }
}

bool TakeContent(TensorType type, std::string_view content, std::vector<double>& numbers) {
  switch (type) {
    case TensorType::kFloat:
      TakeAll<float>(content, numbers);
      return true;
    case TensorType::kDouble:
      TakeAll<double>(content, numbers);
      return true;
    case TensorType::kInt32:
      TakeAll<int32_t>(content, numbers);
      return true;
    case TensorType::kUint8:
    case TensorType::kBool:
      TakeAll<uint8_t>(content, numbers);
      return true;
    case TensorType::kInt16:
      TakeAll<int16_t>(content, numbers);
      return true;
    case TensorType::kInt8:
      TakeAll<int8_t>(content, numbers);
      return true;
    case TensorType::kInt64:
      TakeAll<int64_t>(content, numbers);
      return true;
    case TensorType::kUint16:
      TakeAll<uint16_t>(content, numbers);
      return true;
    case TensorType::kUint32:
      TakeAll<uint32_t>(content, numbers);
      return true;
    case TensorType::kUint64:
      TakeAll<uint64_t>(content, numbers);
      return true;
    case TensorType::kBfloat16:
    case TensorType::kHalf: {
      std::vector<double> raw;
      TakeAll<uint16_t>(content, raw);
      for (double bits : raw) {
        const auto word = static_cast<uint16_t>(bits);
        numbers.push_back(type == TensorType::kHalf ? FromHalf(word) : FromBfloat16(word));
      }
      return true;
    }
    case TensorType::kNone:
    case TensorType::kString:
      return content.empty();
  }
  return false;
}

// A repeated number, packed or single.
void TakeNumbers(const Field& field, TensorType type, std::vector<double>& numbers) {
  const auto add = [&](uint64_t raw) {
    if (field.number == 13) {
      const auto word = static_cast<uint16_t>(raw);
      numbers.push_back(type == TensorType::kBfloat16 ? FromBfloat16(word) : FromHalf(word));
    } else if (field.number == 16 || field.number == 17) {
      numbers.push_back(static_cast<double>(raw));
    } else {
      numbers.push_back(static_cast<double>(static_cast<int64_t>(raw)));
    }
  };
  if (field.type == WireType::kVarint) return add(field.raw);
  if (field.type == WireType::kFixed32) return numbers.push_back(field.AsFloat());
  if (field.type == WireType::kFixed64) return numbers.push_back(field.AsDouble());
  if (field.number == 5) return TakeAll<float>(field.bytes, numbers);
  if (field.number == 6) return TakeAll<double>(field.bytes, numbers);
  std::string_view packed = field.bytes;
  for (uint64_t raw = 0; !packed.empty() && TakeVarint(packed, raw);) add(raw);
}

bool TakeShape(std::string_view in, std::vector<int64_t>& shape) {
  Field field;
  while (TakeField(in, field)) {
    if (field.number != 2 || field.type != WireType::kBytes) continue;
    std::string_view dim = field.bytes;
    int64_t size = 0;
    while (TakeField(dim, field)) {
      if (field.number == 1 && field.type == WireType::kVarint) size = field.AsInt();
    }
    if (size < 0 || !dim.empty() || shape.size() == 16) return false;
    shape.push_back(size);
  }
  return in.empty();
}

// kMaxElements + 1 when there are more.
uint64_t ElementsOf(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const auto size : shape) {
    if (size == 0) return 0;
    if (static_cast<uint64_t>(size) > kMaxElements / count) return kMaxElements + 1;
    count *= static_cast<uint64_t>(size);
  }
  return count;
}

}  // namespace

Result<Tensor> ReadTensor(std::string_view bytes) {
  Tensor tensor;
  std::string_view content;
  Field field;
  bool good = true;
  while (good && TakeField(bytes, field)) {
    if (field.number == 1 && field.type == WireType::kVarint) {
      tensor.type = static_cast<TensorType>(field.raw);
    } else if (field.number == 2 && field.type == WireType::kBytes) {
      good = TakeShape(field.bytes, tensor.shape);
    } else if (field.number == 4 && field.type == WireType::kBytes) {
      content = field.bytes;
    } else if (field.number == 8 && field.type == WireType::kBytes) {
      tensor.strings.emplace_back(field.bytes);
    } else if ((field.number >= 5 && field.number <= 7) || field.number == 10 ||
               field.number == 11 || field.number == 13 || field.number == 16 ||
               field.number == 17) {
      TakeNumbers(field, tensor.type, tensor.numbers);
    }
  }
  if (!good || !bytes.empty()) return Fail(ErrorCode::kInvalid, "not a tensor");
  if (!TakeContent(tensor.type, content, tensor.numbers)) {
    return Fail(ErrorCode::kInvalid,
                "a tensor of type " + std::to_string(static_cast<int32_t>(tensor.type)));
  }
  const uint64_t wanted = ElementsOf(tensor.shape);
  const bool text = tensor.type == TensorType::kString;
  const uint64_t found = text ? tensor.strings.size() : tensor.numbers.size();
  if (wanted == found) return tensor;
  // A run of equal values at the end may be left out, down to a single one.
  if (wanted > kMaxFill || found > wanted || found == 0) {
    return Fail(ErrorCode::kInvalid, "a tensor whose shape its values do not fill");
  }
  if (text) {
    if (wanted > 4096) return Fail(ErrorCode::kInvalid, "a tensor of too many equal texts");
    tensor.strings.resize(wanted, tensor.strings.back());
  } else {
    tensor.numbers.resize(wanted, tensor.numbers.back());
  }
  return tensor;
}

std::string WriteTensor(const Tensor& tensor) {
  std::string out;
  std::string shape;
  proto::PutInt(out, 1, static_cast<int64_t>(tensor.type));
  for (const auto size : tensor.shape) {
    std::string dim;
    proto::PutInt(dim, 1, size);
    proto::PutBytes(shape, 2, dim);
  }
  proto::PutBytes(out, 2, shape);
  if (tensor.type == TensorType::kString) {
    for (const auto& text : tensor.strings) proto::PutBytes(out, 8, text);
    return out;
  }
  std::string packed;
  if (tensor.type == TensorType::kFloat) {
    for (const double number : tensor.numbers) {
      const auto value = static_cast<float>(number);
      packed.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    proto::PutBytes(out, 5, packed);
  } else if (tensor.type == TensorType::kDouble) {
    for (const double value : tensor.numbers) {
      packed.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    proto::PutBytes(out, 6, packed);
  } else {
    const uint32_t number = tensor.type == TensorType::kInt64  ? 10
                            : tensor.type == TensorType::kBool ? 11
                                                               : 7;
    for (const double value : tensor.numbers) {
      proto::PutVarint(packed, static_cast<uint64_t>(static_cast<int64_t>(value)));
    }
    proto::PutBytes(out, number, packed);
  }
  return out;
}

}  // namespace athanor
