// What is searched: parameters with ranges, scales, choices and conditions. A Space is made from
// JSON and validated; it maps assignments (what a trial is given) to points (what models work on)
// and back.
//
//   {"name": "lr", "type": "float", "scale": "log", "low": 1e-5, "high": 1}
//   {"name": "layers", "type": "int", "low": 1, "high": 12}            scale: linear when not given
//   {"name": "optimizer", "type": "cat", "choices": ["sgd", "adam", 3, true]}
//   {"name": "momentum", "type": "float", "scale": "reverse_log", "low": 0, "high": 0.999,
//    "if": "optimizer == sgd and layers > 2"}
//   {"name": "epochs", "type": "const", "value": 30}
//
// Scales: linear; log; reverse_log, which is uniform in -log(1-x), for 0.9 ... 0.9999; auto, which
// is log when low > 0 and high/low >= 100, else linear. Conditions name parameters that come
// before; a parameter whose condition fails is inactive and absent from the assignment. `default`
// is used for a parameter that a trial of a warm start does not have. `levels` is the number of
// values a grid takes of a range.
//
// Values are immutable after Parse and safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/text/json.h"
#include "tune/gp/gp.h"

namespace athanor::tune {

enum class Kind { kFloat, kInt, kChoice, kConstant };
enum class Scale { kLinear, kLog, kReverseLog };

// A choice or a constant is stored as its compact JSON text, so that 1, "1" and true stay
// different.
struct Choice {
  std::string json;
  bool operator==(const Choice&) const = default;
};
using Value = std::variant<double, int64_t, Choice>;
// By parameter, in the space's order; empty: inactive.
using Assignment = std::vector<std::optional<Value>>;

struct Condition {
  enum class Is { kOneOf, kNoneOf, kBelow, kAtMost, kAbove, kAtLeast };
  size_t parameter = 0;
  Is is = Is::kOneOf;
  std::vector<std::string> choices;  // for kOneOf and kNoneOf, as JSON texts
  double bound = 0;                  // for the others
};

struct Parameter {
  std::string name;
  Kind kind = Kind::kFloat;
  Scale scale = Scale::kLinear;
  double low = 0, high = 0;
  std::vector<std::string> choices;   // JSON texts; one for a constant
  std::vector<Condition> conditions;  // all must hold
  std::optional<Value> otherwise;     // `default`
  size_t levels = 0;                  // 0: not given

  bool fixed() const;        // only one value
  double unit_low() const;   // the ends of the scale that 0 and 1 stand for; ints have half a
  double unit_high() const;  // cell beyond each end
};

class Space {
 public:
  static constexpr size_t kMaxParameters = 1000;
  static constexpr size_t kMaxChoices = 100'000;

  // kInvalid, naming the parameter (also as `where`), what is wrong with it and how it may look.
  static Result<Space> Parse(const Json& parameters);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  size_t size() const { return parameters_.size(); }
  std::vector<char> categorical() const;
  bool conditional() const;
  // How many assignments there are, ignoring conditions; empty if there is a float, or more than
  // 10^15.
  std::optional<uint64_t> cells() const;

  Assignment Decode(const Point& point) const;
  // Of an assignment inside or outside the ranges (clipped). Inactive: 0.5, or the index past the
  // last choice.
  Point Encode(const Assignment& assignment) const;
  // The point as it will be evaluated: ints rounded, inactive parameters set aside.
  void Snap(Point& point) const;
  // From `cell` (mixed radix, each digit one int or choice) of a space whose cells() is known.
  Point CellPoint(uint64_t cell) const;

  Json ToJson(const Assignment& assignment) const;
  // Also numbers for ints given as 3.0. kInvalid for a missing, unknown or unfit value. `tolerant`
  // is for trials made elsewhere: ranges are not checked, unknown names are skipped, a missing
  // parameter gets its default.
  Result<Assignment> FromJson(const Json& values, bool tolerant) const;

 private:
  std::vector<Parameter> parameters_;
};

// The list of parameters with other ranges: {"lr": {"low": 1e-5}, "optimizer": {"choices": [...]}};
// others stay as they are. kInvalid: no such parameter, another key, or no valid space any more.
Result<Json> WithRanges(const Json& parameters, const Json& ranges);

// Whether `condition` holds for the value of its parameter (which is active).
bool Holds(const Condition& condition, const Value& value);
// One value as JSON text: the number, or the choice.
std::string TextOf(const Value& value);
// Of a whole assignment; equal texts mean equal trials.
std::string KeyOf(const Assignment& assignment);

}  // namespace athanor::tune
