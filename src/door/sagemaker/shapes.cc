#include "door/sagemaker/shapes.h"

#include <re2/re2.h>

#include <nlohmann/json.hpp>

#include "base/text/format.h"
#include "base/text/text.h"
#include "base/text/unicode.h"

namespace athanor::sagemaker {
namespace {

size_t Characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(std::max<size_t>(Utf8Length(text), 1));
  return count;
}

const Json* Find(const Json& in, std::string_view key) {
  const auto found = in.find(std::string(key));
  return found == in.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

std::string Below(std::string_view path, std::string_view key) {
  std::string name(key);
  if (!name.empty() && name[0] >= 'A' && name[0] <= 'Z') name[0] += 'a' - 'A';
  return path.empty() ? name : std::string(path) + "." + name;
}

std::string Member(std::string_view path, size_t index) {
  return fmt::format("{}.{}.member", path, index + 1);
}

AwsError Invalid(std::string message) { return {400, "ValidationException", std::move(message)}; }

void ShapeCheck::Note(std::string_view path, std::string_view value, std::string_view constraint) {
  notes_.push_back(fmt::format("Value '{}' at '{}' failed to satisfy constraint: {}",
                               Printable(value.substr(0, 512)), path, constraint));
}

void ShapeCheck::Missing(std::string_view path) {
  notes_.push_back(fmt::format(
      "Value null at '{}' failed to satisfy constraint: Member must not be null", path));
}

void ShapeCheck::Mistyped(std::string_view path, std::string_view wanted) {
  if (mistyped_.empty()) mistyped_ = fmt::format("'{}' must be {}", path, wanted);
}

std::optional<AwsError> ShapeCheck::Error() const {
  if (!mistyped_.empty()) return AwsError{400, "SerializationException", mistyped_};
  if (notes_.empty()) return std::nullopt;
  return Invalid(fmt::format("{} validation error{} detected: {}", notes_.size(),
                             notes_.size() == 1 ? "" : "s", Join(notes_, "; ")));
}

void ShapeCheck::CheckText(std::string_view path, const std::string& text, const TextRule& rule) {
  const size_t length = Characters(text);
  if (length < rule.min) {
    Note(path, text, fmt::format("Member must have length greater than or equal to {}", rule.min));
  } else if (length > rule.max) {
    Note(path, text, fmt::format("Member must have length less than or equal to {}", rule.max));
  }
  if (!rule.pattern.empty() && !RE2::FullMatch(text, RE2(rule.pattern, RE2::Quiet))) {
    Note(path, text,
         fmt::format("Member must satisfy regular expression pattern: {}", rule.pattern));
  }
  if (!rule.one_of.empty() &&
      std::find(rule.one_of.begin(), rule.one_of.end(), text) == rule.one_of.end()) {
    std::vector<std::string> all(rule.one_of.begin(), rule.one_of.end());
    Note(path, text, "Member must satisfy enum value set: [" + Join(all, ", ") + "]");
  }
}

std::optional<std::string> ShapeCheck::Text(const Json& in, std::string_view key,
                                            std::string_view path, const TextRule& rule,
                                            Need need) {
  const auto where = Below(path, key);
  const auto* value = Find(in, key);
  if (!value) {
    if (need == Need::kRequired) Missing(where);
    return std::nullopt;
  }
  if (!value->is_string()) {
    Mistyped(where, "a string");
    return std::nullopt;
  }
  auto text = value->get<std::string>();
  CheckText(where, text, rule);
  return text;
}

std::optional<int64_t> ShapeCheck::Number(const Json& in, std::string_view key,
                                          std::string_view path, const NumberRule& rule,
                                          Need need) {
  const auto where = Below(path, key);
  const auto* value = Find(in, key);
  if (!value) {
    if (need == Need::kRequired) Missing(where);
    return std::nullopt;
  }
  if (!value->is_number_integer()) {
    Mistyped(where, "an integer");
    return std::nullopt;
  }
  const auto number = value->get<int64_t>();
  if (number < rule.min) {
    Note(where, std::to_string(number),
         fmt::format("Member must have value greater than or equal to {}", rule.min));
  } else if (number > rule.max) {
    Note(where, std::to_string(number),
         fmt::format("Member must have value less than or equal to {}", rule.max));
  }
  return number;
}

std::optional<bool> ShapeCheck::Flag(const Json& in, std::string_view key, std::string_view path) {
  const auto* value = Find(in, key);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) {
    Mistyped(Below(path, key), "true or false");
    return std::nullopt;
  }
  return value->get<bool>();
}

const Json* ShapeCheck::Object(const Json& in, std::string_view key, std::string_view path,
                               Need need) {
  const auto* value = Find(in, key);
  if (!value && need == Need::kRequired) Missing(Below(path, key));
  if (!value) return nullptr;
  if (value->is_object()) return value;
  Mistyped(Below(path, key), "a structure");
  return nullptr;
}

const Json* ShapeCheck::List(const Json& in, std::string_view key, std::string_view path,
                             size_t most, Need need) {
  const auto where = Below(path, key);
  const auto* value = Find(in, key);
  if (!value && need == Need::kRequired) Missing(where);
  if (!value) return nullptr;
  if (!value->is_array()) {
    Mistyped(where, "a list");
    return nullptr;
  }
  if (value->size() > most) {
    Note(where, fmt::format("{} members", value->size()),
         fmt::format("Member must have length less than or equal to {}", most));
    return nullptr;
  }
  return value;
}

const Json* ShapeCheck::Texts(const Json& in, std::string_view key, std::string_view path,
                              size_t most, const TextRule& keys, const TextRule& values) {
  const auto where = Below(path, key);
  const auto* map = Object(in, key, path);
  if (!map) return nullptr;
  if (map->size() > most) {
    Note(where, fmt::format("{} members", map->size()),
         fmt::format("Member must have length less than or equal to {}", most));
    return nullptr;
  }
  for (const auto& [name, value] : map->items()) {
    CheckText(where + ".key", name, keys);
    if (!value.is_string()) {
      Mistyped(where + "." + name, "a string");
      return nullptr;
    }
    CheckText(where + "." + name, value.get<std::string>(), values);
  }
  return map;
}

}  // namespace athanor::sagemaker
