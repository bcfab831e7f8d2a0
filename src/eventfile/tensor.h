// TensorProto: the kinds of numbers and the strings that TensorBoard's plug-ins use. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace athanor {

// TensorFlow's DataType, as it is numbered on the wire.
enum class TensorType : int32_t {
  kNone = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kInt64 = 9,
  kBool = 10,
  kBfloat16 = 14,
  kUint16 = 17,
  kHalf = 19,
  kUint32 = 22,
  kUint64 = 23,
};

struct Tensor {
  TensorType type = TensorType::kNone;
  std::vector<int64_t> shape;
  std::vector<double> numbers;       // in row order; 64-bit integers may lose their last bits
  std::vector<std::string> strings;  // of kString
};

// kInvalid: not a TensorProto, a type of another kind, or a shape that its bytes do not fill. A
// single value fills its whole shape, as TensorFlow writes constants.
Result<Tensor> ReadTensor(std::string_view bytes);
// Of kFloat, kDouble, kInt32, kInt64, kBool and kString.
std::string WriteTensor(const Tensor& tensor);

}  // namespace athanor
