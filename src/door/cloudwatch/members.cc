#include "door/cloudwatch/members.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"

namespace athanor {
namespace {

constexpr double kMostSeconds = 253'402'300'799;  // the end of 9999

// `count` digits at the start of `text`, which is moved past them.
std::optional<int> Digits(std::string_view& text, size_t count) {
  if (text.size() < count) return std::nullopt;
  int number = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return number;
}

bool Take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Milliseconds of ".25", any number of digits; nothing there is 0.
std::optional<int64_t> TakeFraction(std::string_view& text) {
  if (!Take(text, ".")) return 0;
  int64_t millis = 0;
  int64_t unit = 100;
  size_t digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; ++digits) {
    millis += unit * (text.front() - '0');
    unit /= 10;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  return millis;
}

// Minutes east of UTC; nothing there is UTC.
std::optional<int> TakeOffset(std::string_view& text) {
  if (text.empty() || Take(text, "Zz")) return 0;
  const bool west = text.front() == '-';
  if (!Take(text, "+-")) return std::nullopt;
  const auto hours = Digits(text, 2);
  Take(text, ":");
  const auto minutes = text.empty() ? std::optional<int>(0) : Digits(text, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  return (west ? -1 : 1) * (*hours * 60 + *minutes);
}

std::string Shown(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : DumpJson(value);
  return Printable(text.substr(0, 100));
}

// A whole number, or a text that is one.
std::optional<int64_t> WholeNumber(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return static_cast<int64_t>(std::min(number, kMost));
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<int64_t> ParseIsoTime(std::string_view text) {
  const auto year = Digits(text, 4);
  if (!year || !Take(text, "-")) return std::nullopt;
  const auto month = Digits(text, 2);
  if (!month || !Take(text, "-")) return std::nullopt;
  const auto day = Digits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const std::chrono::milliseconds midnight = std::chrono::sys_days(date).time_since_epoch();
  if (text.empty()) return midnight.count();
  if (!Take(text, "Tt ")) return std::nullopt;
  const auto hour = Digits(text, 2);
  if (!hour || !Take(text, ":")) return std::nullopt;
  const auto minute = Digits(text, 2);
  if (!minute) return std::nullopt;
  const auto second = Take(text, ":") ? Digits(text, 2) : std::optional<int>(0);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto fraction = TakeFraction(text);
  if (!fraction) return std::nullopt;
  const auto offset = TakeOffset(text);
  if (!offset || !text.empty()) return std::nullopt;
  const int64_t seconds = (*hour * 60 + *minute - *offset) * 60LL + *second;
  return midnight.count() + seconds * 1000 + *fraction;
}

Members::Members(const Json& object, std::string invalid, std::string path)
    : object_(object), invalid_(std::move(invalid)), path_(std::move(path)) {
  if (!object_.is_object()) {
    Fault({400, "SerializationException",
           path_.empty() ? "the body is no JSON object" : "no object at '" + path_ + "'"});
  }
}

const Json* Members::Find(std::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(std::string(name));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool Members::Has(std::string_view name) const { return Find(name) != nullptr; }

std::string Members::PathOf(std::string_view name) const {
  std::string path = path_.empty() ? "" : path_ + ".";
  // AWS's messages begin members with a small letter.
  path += ToLower(name.substr(0, 1));
  path += name.substr(std::min<size_t>(1, name.size()));
  return path;
}

void Members::Fault(AwsError error) {
  if (!fault_) fault_ = std::move(error);
}

void Members::Constraint(std::string_view name, std::string_view value,
                         std::string_view constraint) {
  Fault(
      {400, invalid_,
       fmt::format("1 validation error detected: Value {} at '{}' failed to satisfy constraint: "
                   "Member must {}",
                   value.empty() ? "null" : fmt::format("'{}'", value), PathOf(name), constraint)});
}

void Members::Missing(std::string_view name) { Constraint(name, {}, "not be null"); }

void Members::WrongType(std::string_view name) {
  Fault({400, "SerializationException",
         fmt::format("the value at '{}' has the wrong type", PathOf(name))});
}

std::string Members::Text(std::string_view name, size_t longest) {
  const Json* value = Find(name);
  if (!value) return {};
  if (!value->is_string()) {
    WrongType(name);
    return {};
  }
  auto text = value->get<std::string>();
  if (text.size() > longest) {
    Constraint(name, Shown(*value), fmt::format("have length less than or equal to {}", longest));
  }
  return text;
}

std::string Members::RequiredText(std::string_view name, size_t longest) {
  std::string text = Text(name, longest);
  if (!Has(name)) {
    Missing(name);
  } else if (text.empty()) {
    Fault({400, invalid_,
           fmt::format("1 validation error detected: Value '' at '{}' failed to satisfy "
                       "constraint: Member must have length greater than or equal to 1",
                       PathOf(name))});
  }
  return text;
}

std::optional<int64_t> Members::Number(std::string_view name, int64_t least, int64_t most) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  const auto number = WholeNumber(*value);
  if (!number) {
    WrongType(name);
  } else if (*number < least) {
    Constraint(name, Shown(*value), fmt::format("have value greater than or equal to {}", least));
  } else if (*number > most) {
    Constraint(name, Shown(*value), fmt::format("have value less than or equal to {}", most));
  } else {
    return number;
  }
  return std::nullopt;
}

bool Members::Flag(std::string_view name, bool otherwise) {
  const Json* value = Find(name);
  if (!value) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  const std::string text = value->is_string() ? value->get<std::string>() : std::string();
  if (text == "true" || text == "false") return text == "true";
  WrongType(name);
  return otherwise;
}

std::optional<int64_t> Members::Time(std::string_view name) {
  const Json* value = Find(name);
  if (!value) return std::nullopt;
  std::optional<int64_t> time;
  if (value->is_number()) {
    const double seconds = value->get<double>();
    if (seconds >= 0 && seconds <= kMostSeconds) time = std::llround(seconds * 1000);
  } else if (value->is_string()) {
    time = ParseIsoTime(value->get_ref<const std::string&>());
  }
  if (!time) {
    Fault({400, invalid_,
           fmt::format("the value '{}' at '{}' is no time", Shown(*value), PathOf(name))});
  }
  return time;
}

const Json* Members::List(std::string_view name, size_t most) {
  const Json* value = Find(name);
  if (!value) return nullptr;
  if (!value->is_array()) {
    WrongType(name);
    return nullptr;
  }
  if (value->size() > most) {
    Constraint(name, Shown(*value), fmt::format("have length less than or equal to {}", most));
  }
  return value;
}

const Json* Members::Object(std::string_view name) {
  const Json* value = Find(name);
  if (value && !value->is_object()) {
    WrongType(name);
    return nullptr;
  }
  return value;
}

std::vector<std::string> Members::Texts(std::string_view name, size_t most) {
  std::vector<std::string> texts;
  const Json* list = List(name, most);
  if (!list) return texts;
  for (const auto& item : *list) {
    if (!item.is_string()) {
      WrongType(name);
      return {};
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

Members Members::In(const Json& object, const std::string& name) const {
  return {object, invalid_, PathOf(name)};
}

void Members::Adopt(const Members& inner) {
  if (inner.fault_) Fault(*inner.fault_);
}

}  // namespace athanor
