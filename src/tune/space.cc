#include "tune/space.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "tune/math.h"

namespace athanor::tune {
namespace {

double Forward(Scale scale, double x) {
  switch (scale) {
    case Scale::kLinear:
      return x;
    case Scale::kLog:
      return Log(x);
    case Scale::kReverseLog:
      return -Log1p(-x);
  }
  return x;
}

double Backward(Scale scale, double w) {
  switch (scale) {
    case Scale::kLinear:
      return w;
    case Scale::kLog:
      return Exp(w);
    case Scale::kReverseLog:
      return -Expm1(-w);
  }
  return w;
}

Value DecodeOne(const Parameter& p, double u) {
  if (p.kind == Kind::kConstant) return Choice{p.choices.front()};
  if (p.kind == Kind::kChoice) {
    const auto index = static_cast<size_t>(std::clamp(u, 0.0, 1e9));
    return Choice{p.choices[std::min(index, p.choices.size() - 1)]};
  }
  double x = p.low;
  if (!p.fixed()) {
    const double low = p.unit_low(), high = p.unit_high();
    x = Backward(p.scale, low + std::clamp(u, 0.0, 1.0) * (high - low));
    // A range of nearly all doubles overflows the difference; its middle is as good as any.
    if (!std::isfinite(x)) x = p.low / 2 + p.high / 2;
  }
  x = std::clamp(x, p.low, p.high);
  if (p.kind == Kind::kInt) return static_cast<int64_t>(std::clamp(std::round(x), p.low, p.high));
  return x;
}

double NumberOf(const Value& value) {
  if (const auto* x = std::get_if<double>(&value)) return *x;
  if (const auto* x = std::get_if<int64_t>(&value)) return static_cast<double>(*x);
  return 0;
}

double EncodeOne(const Parameter& p, const Value& value) {
  if (p.kind == Kind::kConstant) return 0;
  if (p.kind == Kind::kChoice) {
    const auto& text = std::get<Choice>(value).json;
    return static_cast<double>(std::find(p.choices.begin(), p.choices.end(), text) -
                               p.choices.begin());
  }
  if (p.fixed()) return 0.5;
  const double low = p.unit_low(), high = p.unit_high();
  const double x = std::clamp(NumberOf(value), p.low, p.high);
  const double u = (Forward(p.scale, x) - low) / (high - low);
  return std::isfinite(u) ? std::clamp(u, 0.0, 1.0) : 0.5;
}

double Inactive(const Parameter& p) {
  return p.kind == Kind::kChoice ? static_cast<double>(p.choices.size()) : 0.5;
}

bool Active(const Parameter& p, const Assignment& above) {
  return std::all_of(p.conditions.begin(), p.conditions.end(), [&](const Condition& each) {
    return above[each.parameter] && Holds(each, *above[each.parameter]);
  });
}

// How many values an int or a choice has.
std::optional<uint64_t> CountOf(const Parameter& p) {
  if (p.kind == Kind::kChoice || p.kind == Kind::kConstant) return p.choices.size();
  if (p.fixed()) return 1;
  if (p.kind == Kind::kInt) return static_cast<uint64_t>(p.high - p.low) + 1;
  return std::nullopt;
}

}  // namespace

bool Parameter::fixed() const {
  return kind == Kind::kConstant || (kind == Kind::kChoice ? choices.size() == 1 : low == high);
}

// Half a cell beyond the ends of an int: rounding then gives each end as wide a cell as the others.
double Parameter::unit_low() const {
  if (kind == Kind::kInt && scale == Scale::kLinear) return low - 0.5;
  if (kind == Kind::kInt && scale == Scale::kLog) return Log(std::max(low - 0.5, 0.5 * low));
  return Forward(scale, low);
}

double Parameter::unit_high() const {
  if (kind == Kind::kInt && scale == Scale::kLinear) return high + 0.5;
  if (kind == Kind::kInt && scale == Scale::kLog) return Log(high + 0.5);
  return Forward(scale, high);
}

bool Holds(const Condition& condition, const Value& value) {
  const auto among = [&] {
    const auto text = TextOf(value);
    return std::find(condition.choices.begin(), condition.choices.end(), text) !=
           condition.choices.end();
  };
  switch (condition.is) {
    case Condition::Is::kOneOf:
      return among();
    case Condition::Is::kNoneOf:
      return !among();
    case Condition::Is::kBelow:
      return NumberOf(value) < condition.bound;
    case Condition::Is::kAtMost:
      return NumberOf(value) <= condition.bound;
    case Condition::Is::kAbove:
      return NumberOf(value) > condition.bound;
    case Condition::Is::kAtLeast:
      return NumberOf(value) >= condition.bound;
  }
  return false;
}

std::string TextOf(const Value& value) {
  if (const auto* x = std::get_if<double>(&value)) return DumpJson(Json(*x));
  if (const auto* x = std::get_if<int64_t>(&value)) return std::to_string(*x);
  return std::get<Choice>(value).json;
}

std::string KeyOf(const Assignment& assignment) {
  std::string key;
  for (const auto& each : assignment) {
    key += each ? TextOf(*each) : "-";
    key += '\n';  // no JSON text holds one
  }
  return key;
}

std::vector<char> Space::categorical() const {
  std::vector<char> out;
  for (const auto& p : parameters_) {
    out.push_back(p.kind == Kind::kChoice || p.kind == Kind::kConstant);
  }
  return out;
}

bool Space::conditional() const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [](const Parameter& p) { return !p.conditions.empty(); });
}

std::optional<uint64_t> Space::cells() const {
  uint64_t product = 1;
  for (const auto& p : parameters_) {
    const auto count = CountOf(p);
    if (!count || *count > uint64_t{1'000'000'000'000'000} / product) return std::nullopt;
    product *= *count;
  }
  return product;
}

Assignment Space::Decode(const Point& point) const {
  Assignment out;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (Active(parameters_[i], out)) {
      out.emplace_back(DecodeOne(parameters_[i], point[i]));
    } else {
      out.emplace_back(std::nullopt);
    }
  }
  return out;
}

Point Space::Encode(const Assignment& assignment) const {
  Point point;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    point.push_back(assignment[i] ? EncodeOne(parameters_[i], *assignment[i])
                                  : Inactive(parameters_[i]));
  }
  return point;
}

void Space::Snap(Point& point) const {
  if (conditional()) {
    point = Encode(Decode(point));
    return;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& p = parameters_[i];
    if (p.kind == Kind::kInt || p.fixed()) point[i] = EncodeOne(p, DecodeOne(p, point[i]));
  }
}

Point Space::CellPoint(uint64_t cell) const {
  Point point;
  for (const auto& p : parameters_) {
    const uint64_t count = CountOf(p).value_or(1);
    const uint64_t digit = cell % count;
    cell /= count;
    if (p.kind == Kind::kInt) {
      point.push_back(EncodeOne(p, static_cast<int64_t>(p.low) + static_cast<int64_t>(digit)));
    } else {
      point.push_back(static_cast<double>(digit));
    }
  }
  Snap(point);
  return point;
}

}  // namespace athanor::tune
