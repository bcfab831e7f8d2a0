// Space from JSON and back. Errors say which parameter is wrong, why, and what would be right.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "tune/space.h"

namespace athanor::tune {
namespace {

constexpr double kMaxInt = 9007199254740992.0;  // 2^53: beyond, doubles skip integers
constexpr const char* kShape =
    "{\"name\": \"lr\", \"type\": \"float\", \"scale\": \"log\", \"low\": 1e-5, \"high\": 1}";

tl::unexpected<Error> Bad(std::string what, std::string why, std::string hint) {
  return Fail(Error{ErrorCode::kInvalid, std::move(what), std::move(hint)}
                  .Why(std::move(why))
                  .Id("ATH-T0001"));
}

std::string Shown(const Json& value) {
  auto text = DumpJson(value);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return Printable(text);
}

bool IsScalar(const Json& value) {
  return value.is_string() || value.is_boolean() || value.is_number() || value.is_null();
}

class Reader {
 public:
  Reader(const Json& json, const std::vector<Parameter>& above) : json_(json), above_(above) {}

  Result<Parameter> Read() {
    ATHANOR_CHECK_OK(ReadName());
    ATHANOR_CHECK_OK(CheckKeys());
    ATHANOR_CHECK_OK(ReadKind());
    if (p_.kind == Kind::kConstant) {
      ATHANOR_CHECK_OK(ReadConstant());
    } else if (p_.kind == Kind::kChoice) {
      ATHANOR_CHECK_OK(ReadChoices());
    } else {
      ATHANOR_CHECK_OK(ReadRange());
      ATHANOR_CHECK_OK(ReadScale());
      ATHANOR_CHECK_OK(ReadLevels());
    }
    ATHANOR_CHECK_OK(ReadCondition());
    return std::move(p_);
  }

 private:
  std::string Named() const { return "parameter " + Printable(p_.name); }

  Status ReadName() {
    if (!json_.is_object())
      return Bad("a parameter must be an object", "seen: " + Shown(json_), kShape);
    const auto name = json_.find("name");
    if (name == json_.end() || !name->is_string() || name->get<std::string>().empty()) {
      return Bad("a parameter has no name", "seen: " + Shown(json_), kShape);
    }
    p_.name = name->get<std::string>();
    if (p_.name.size() > 256) return Bad("a parameter's name is too long", "", "at most 256 bytes");
    for (const auto& other : above_) {
      if (other.name == p_.name) {
        return Bad(Named() + " is there twice", "", "give every parameter a name of its own");
      }
    }
    return Ok();
  }

  Status CheckKeys() {
    static const std::vector<std::string> keys = {"name",    "type",  "scale", "low",     "high",
                                                  "choices", "value", "if",    "default", "levels"};
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      const auto near = Nearest(key, keys);
      return Bad(Named() + " has an unknown key: " + Printable(key), "",
                 near ? "did you mean " + *near + "?" : "keys are " + Join(keys, ", "));
    }
    return Ok();
  }

  Status ReadKind() {
    const auto type = json_.find("type");
    const auto text = type != json_.end() && type->is_string() ? type->get<std::string>() : "";
    if (text == "float") {
      p_.kind = Kind::kFloat;
    } else if (text == "int") {
      p_.kind = Kind::kInt;
    } else if (text == "cat") {
      p_.kind = Kind::kChoice;
    } else if (text == "const") {
      p_.kind = Kind::kConstant;
    } else {
      return Bad(Named() + " has no known type",
                 type == json_.end() ? "no type is given" : "seen: " + Shown(*type),
                 "type is one of float, int, cat, const");
    }
    const bool ranged = p_.kind == Kind::kFloat || p_.kind == Kind::kInt;
    for (const char* key : {"low", "high", "scale", "levels"}) {
      if (!ranged && json_.contains(key)) {
        return Bad(Named() + " of type " + text + " has a " + key, "",
                   "only float and int have ranges");
      }
    }
    if (ranged && json_.contains("choices")) {
      return Bad(Named() + " of type " + text + " has choices", "", "type \"cat\" has choices");
    }
    return Ok();
  }

  Status ReadConstant() {
    const auto value = json_.find("value");
    if (value == json_.end() || !IsScalar(*value)) {
      return Bad(Named() + " is constant but has no plain value", "",
                 "{\"name\": \"epochs\", \"type\": \"const\", \"value\": 30}");
    }
    p_.choices = {DumpJson(*value)};
    return Ok();
  }

  Status ReadChoices() {
    const auto choices = json_.find("choices");
    const std::string hint =
        "{\"name\": \"optimizer\", \"type\": \"cat\", \"choices\": [\"sgd\", \"adam\"]}";
    if (choices == json_.end() || !choices->is_array() || choices->empty()) {
      return Bad(Named() + " has no choices", "", hint);
    }
    if (choices->size() > Space::kMaxChoices) {
      return Bad(
          Named() + " has too many choices", fmt::format("{}", choices->size()),
          fmt::format("at most {}; a number in a range is an int or a float", Space::kMaxChoices));
    }
    std::set<std::string> seen;
    for (const auto& each : *choices) {
      if (!IsScalar(each)) {
        return Bad(Named() + " has a choice that is no plain value", "seen: " + Shown(each), hint);
      }
      auto text = DumpJson(each);
      if (!seen.insert(text).second) {
        return Bad(Named() + " has a choice twice", "seen: " + Shown(each),
                   "leave each choice once");
      }
      p_.choices.push_back(std::move(text));
    }
    return Ok();
  }

  Result<double> ReadEnd(const char* key) {
    const auto value = json_.find(key);
    if (value == json_.end()) return Bad(Named() + " has no " + key, "", kShape);
    // A quoted number is what SageMaker's ranges have; NaN and infinities arrive as strings.
    if (!value->is_number()) {
      return Bad(Named() + ": " + key + " is not a number", "seen: " + Shown(*value), kShape);
    }
    const double number = value->get<double>();
    if (!std::isfinite(number)) {
      return Bad(Named() + ": " + key + " is not finite", "", kShape);
    }
    if (p_.kind == Kind::kInt && (number != std::floor(number) || std::fabs(number) > kMaxInt)) {
      return Bad(Named() + ": " + key + " is not an integer", "seen: " + Shown(*value),
                 "whole numbers up to 2^53, or type \"float\"");
    }
    return number;
  }

  Status ReadRange() {
    ATHANOR_TRY(p_.low, ReadEnd("low"));
    ATHANOR_TRY(p_.high, ReadEnd("high"));
    if (p_.low > p_.high) {
      return Bad(Named() + " has an empty range", fmt::format("low {} > high {}", p_.low, p_.high),
                 "swap low and high");
    }
    if (!std::isfinite(p_.high - p_.low)) {
      return Bad(Named() + " has a range that is too wide",
                 fmt::format("from {} to {}", p_.low, p_.high), "narrow it, or scale \"log\"");
    }
    return Ok();
  }

  Status ReadScale() {
    const auto scale = json_.find("scale");
    const bool given = scale != json_.end();
    const auto text = !given ? "linear" : scale->is_string() ? scale->get<std::string>() : "";
    if (text == "linear") {
      p_.scale = Scale::kLinear;
    } else if (text == "auto") {
      p_.scale = p_.low > 0 && p_.high / p_.low >= 100 ? Scale::kLog : Scale::kLinear;
    } else if (text == "log") {
      p_.scale = Scale::kLog;
      if (!(p_.low > 0)) {
        return Bad(Named() + ": a log scale needs low > 0", fmt::format("low is {}", p_.low),
                   "raise low above 0, or scale \"linear\"");
      }
    } else if (text == "reverse_log") {
      p_.scale = Scale::kReverseLog;
      if (p_.kind == Kind::kInt || p_.low < 0 || !(p_.high < 1)) {
        return Bad(Named() + ": a reverse-log scale is for floats with 0 <= low <= high < 1",
                   fmt::format("from {} to {}", p_.low, p_.high),
                   "high: 0.9999, or scale \"linear\"");
      }
    } else {
      return Bad(Named() + " has no known scale", "seen: " + Shown(*scale),
                 "scale is one of linear, log, reverse_log, auto");
    }
    return Ok();
  }

  Status ReadLevels() {
    const auto levels = json_.find("levels");
    if (levels == json_.end()) return Ok();
    if (!levels->is_number_integer() || levels->get<double>() < 1 || levels->get<double>() > 1e6) {
      return Bad(Named() + ": levels is not a count", "seen: " + Shown(*levels), "\"levels\": 5");
    }
    p_.levels = levels->get<size_t>();
    return Ok();
  }

  Status ReadCondition() {
    const auto condition = json_.find("if");
    if (condition == json_.end()) return Ok();
    if (!condition->is_string()) return BadCondition(Shown(*condition));
    const auto text = condition->get<std::string>();
    size_t from = 0;
    while (from <= text.size()) {
      const auto end = std::min(text.find(" and ", from), text.size());
      ATHANOR_CHECK_OK(ReadClause(Trim(std::string_view(text).substr(from, end - from))));
      from = end == text.size() ? text.size() + 1 : end + 5;
    }
    return Ok();
  }

  tl::unexpected<Error> BadCondition(const std::string& seen) const {
    return Bad(Named() + ": its condition is not understood", "seen: " + Printable(seen),
               "\"if\": \"optimizer == sgd\"; also !=, in [sgd, adam], <, <=, >, >=, and");
  }

  Status ReadClause(std::string_view clause) {
    struct Word {
      const char* text;
      Condition::Is is;
    };
    static constexpr Word kWords[] = {
        {" == ", Condition::Is::kOneOf},   {" != ", Condition::Is::kNoneOf},
        {" in ", Condition::Is::kOneOf},   {" <= ", Condition::Is::kAtMost},
        {" >= ", Condition::Is::kAtLeast}, {" < ", Condition::Is::kBelow},
        {" > ", Condition::Is::kAbove}};
    for (const auto& word : kWords) {
      const auto at = clause.find(word.text);
      if (at == std::string_view::npos) continue;
      const auto name = Trim(clause.substr(0, at));
      const auto rest = Trim(clause.substr(at + std::string_view(word.text).size()));
      const auto parent = std::find_if(above_.begin(), above_.end(),
                                       [&](const Parameter& p) { return p.name == name; });
      if (parent == above_.end()) {
        return Bad(Named() + ": its condition names no parameter above it",
                   "seen: " + Printable(name), "list the parameter it depends on first");
      }
      Condition out;
      out.parameter = static_cast<size_t>(parent - above_.begin());
      out.is = word.is;
      if (word.is == Condition::Is::kOneOf || word.is == Condition::Is::kNoneOf) {
        ATHANOR_TRY(out.choices, Listed(*parent, rest, std::string_view(word.text) == " in "));
      } else {
        ATHANOR_TRY(out.bound, Bound(*parent, rest));
      }
      p_.conditions.push_back(std::move(out));
      return Ok();
    }
    return BadCondition(std::string(clause));
  }

  Result<double> Bound(const Parameter& parent, std::string_view text) const {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
      return BadCondition(std::string(text));
    }
    if (parent.kind == Kind::kChoice || parent.kind == Kind::kConstant) {
      return Bad(Named() + ": its condition compares the choices of " + Printable(parent.name), "",
                 "use ==, != or in [...]");
    }
    return number;
  }

  Result<std::vector<std::string>> Listed(const Parameter& parent, std::string_view text,
                                          bool list) const {
    std::vector<std::string> words = {std::string(text)};
    if (list) {
      if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
        return BadCondition(std::string(text));
      }
      words = Split(text.substr(1, text.size() - 2), ',');
    }
    std::vector<std::string> out;
    for (const auto& word : words) {
      const auto bare = std::string(Trim(word));
      // What is JSON is taken as it is; a bare word is a string.
      const auto parsed = ParseJson(bare);
      auto value = parsed && IsScalar(*parsed) ? DumpJson(*parsed) : DumpJson(Json(bare));
      const bool chosen = parent.kind == Kind::kChoice || parent.kind == Kind::kConstant;
      if (chosen &&
          std::find(parent.choices.begin(), parent.choices.end(), value) == parent.choices.end()) {
        const auto quoted = DumpJson(Json(bare));
        if (std::find(parent.choices.begin(), parent.choices.end(), quoted) ==
            parent.choices.end()) {
          return Bad(Named() + ": its condition can never hold",
                     Printable(bare) + " is no choice of " + Printable(parent.name),
                     "choices are " + Join(parent.choices, ", "));
        }
        value = quoted;
      }
      out.push_back(std::move(value));
    }
    return out;
  }

  const Json& json_;
  const std::vector<Parameter>& above_;
  Parameter p_;
};

Result<Value> ValueOf(const Parameter& p, const Json& json, bool tolerant) {
  const auto bad = [&](const std::string& hint) {
    return Bad("parameter " + Printable(p.name) + " cannot have this value", "seen: " + Shown(json),
               hint);
  };
  if (p.kind == Kind::kChoice || p.kind == Kind::kConstant) {
    auto text = DumpJson(json);
    if (std::find(p.choices.begin(), p.choices.end(), text) != p.choices.end()) {
      return Choice{std::move(text)};
    }
    // 1 and 1.0 are one number to most languages that talk to us.
    if (json.is_number()) {
      for (const auto& choice : p.choices) {
        const auto other = ParseJson(choice);
        if (other && other->is_number() && other->get<double>() == json.get<double>()) {
          return Choice{choice};
        }
      }
    }
    auto listed = Join(p.choices, ", ");
    if (listed.size() > 200) listed = listed.substr(0, 197) + "...";
    return bad("choices are " + listed);
  }
  if (!json.is_number()) return bad("a number is needed");
  const double number = json.get<double>();
  if (!std::isfinite(number)) return bad("a finite number is needed");
  // An end of the range may have been rounded on its way through a script.
  const double slack = 1e-9 * std::max({1.0, std::fabs(p.low), std::fabs(p.high)});
  if (!tolerant && !(number >= p.low - slack && number <= p.high + slack)) {
    return bad(fmt::format("it ranges from {} to {}", p.low, p.high));
  }
  if (p.kind == Kind::kFloat) return number;
  if (number != std::floor(number) || std::fabs(number) > kMaxInt)
    return bad("a whole number is needed");
  return static_cast<int64_t>(number);
}

Result<Parameter> WithDefault(const Json& json, Result<Parameter> parameter) {
  if (!parameter || !json.contains("default")) return parameter;
  ATHANOR_TRY(auto value, ValueOf(*parameter, json["default"], false));
  parameter->otherwise = std::move(value);
  return parameter;
}

}  // namespace

Result<Space> Space::Parse(const Json& parameters) {
  if (!parameters.is_array() || parameters.empty()) {
    return Bad("the space has no parameters", "seen: " + Shown(parameters),
               std::string("a list: [") + kShape + "]");
  }
  if (parameters.size() > kMaxParameters) {
    return Bad("the space has too many parameters", fmt::format("{}", parameters.size()),
               fmt::format("at most {}", kMaxParameters));
  }
  Space space;
  space.parameters_.reserve(parameters.size());
  for (const auto& each : parameters) {
    auto parameter = WithDefault(each, Reader(each, space.parameters_).Read());
    if (!parameter) {
      Error error = std::move(parameter).error();
      if (each.is_object() && each.contains("name") && each["name"].is_string()) {
        error.where = Printable(each["name"].get<std::string>());
      }
      return Fail(std::move(error));
    }
    space.parameters_.push_back(std::move(*parameter));
  }
  return space;
}

Json Space::ToJson(const Assignment& assignment) const {
  Json out = Json::object();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!assignment[i]) continue;
    const auto& value = *assignment[i];
    Json& at = out[parameters_[i].name];
    if (const auto* x = std::get_if<double>(&value)) {
      at = *x;
    } else if (const auto* n = std::get_if<int64_t>(&value)) {
      at = *n;
    } else {
      at = Json::parse(std::get<Choice>(value).json, nullptr, false);
    }
  }
  return out;
}

Result<Assignment> Space::FromJson(const Json& values, bool tolerant) const {
  if (!values.is_object()) {
    return Bad("a trial's parameters must be an object", "seen: " + Shown(values),
               "{\"lr\": 0.01, \"layers\": 3}");
  }
  Assignment out;
  size_t used = 0;
  for (const auto& p : parameters_) {
    const bool active =
        std::all_of(p.conditions.begin(), p.conditions.end(), [&](const Condition& each) {
          return out[each.parameter] && Holds(each, *out[each.parameter]);
        });
    const auto value = values.find(p.name);
    if (value != values.end()) ++used;
    if (!active) {
      if (value != values.end() && !tolerant) {
        return Bad("parameter " + Printable(p.name) + " is given although its condition fails", "",
                   "leave it out");
      }
      out.emplace_back(std::nullopt);
      continue;
    }
    if (value == values.end()) {
      if (p.kind == Kind::kConstant) {
        out.emplace_back(Choice{p.choices.front()});
        continue;
      }
      if (tolerant && p.otherwise) {
        out.push_back(p.otherwise);
        continue;
      }
      return Bad("parameter " + Printable(p.name) + " is missing", "seen: " + Shown(values),
                 "give it, or declare a \"default\" in the space");
    }
    ATHANOR_TRY(auto read, ValueOf(p, *value, tolerant));
    out.emplace_back(std::move(read));
  }
  if (!tolerant && used != values.size()) {
    std::vector<std::string> names;
    for (const auto& p : parameters_) names.push_back(p.name);
    for (const auto& [key, value] : values.items()) {
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      const auto near = Nearest(key, names);
      return Bad("no such parameter: " + Printable(key), "",
                 near ? "did you mean " + Printable(*near) + "?" : "leave it out");
    }
  }
  return out;
}

Result<Json> WithRanges(const Json& parameters, const Json& ranges) {
  constexpr char kHint[] = "{\"lr\": {\"low\": 1e-5, \"high\": 1e-2}}";
  ATHANOR_TRY(const auto space, Space::Parse(parameters));
  if (!ranges.is_object() || ranges.empty()) {
    return Bad("ranges must be an object of parameters", "seen: " + Shown(ranges), kHint);
  }
  Json out = parameters;
  std::vector<std::string> names;
  for (const auto& p : space.parameters()) names.push_back(p.name);
  for (const auto& [name, range] : ranges.items()) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const auto near = Nearest(name, names);
      return Bad("no such parameter: " + Printable(name), "",
                 near ? "did you mean " + Printable(*near) + "?" : "a new one needs a new search");
    }
    const auto at = static_cast<size_t>(found - names.begin());
    const bool choice = space.parameters()[at].kind == Kind::kChoice;
    if (!range.is_object() || range.empty() || space.parameters()[at].kind == Kind::kConstant) {
      return Bad("parameter " + Printable(name) + " cannot get this range", "seen: " + Shown(range),
                 kHint);
    }
    for (const auto& [key, value] : range.items()) {
      if (choice ? key != "choices" : key != "low" && key != "high") {
        return Bad("parameter " + Printable(name) + ": " + Printable(key) + " cannot be changed",
                   choice ? "only its choices can" : "only low and high can",
                   "a new search can have it");
      }
      out[at][key] = value;
    }
  }
  ATHANOR_CHECK_OK(Space::Parse(out));
  return out;
}

}  // namespace athanor::tune
