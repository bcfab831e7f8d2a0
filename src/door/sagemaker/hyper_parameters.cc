#include "door/sagemaker/hyper_parameters.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/text/text.h"

namespace athanor::sagemaker {
namespace {

// Python's repr: the shortest digits that read back, plain between 1e-4 and 1e16.
std::string PythonFloat(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const double size = std::fabs(value);
  const bool plain = value == 0 || (size >= 1e-4 && size < 1e16);
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                           plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string text(buffer, end.ptr);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string PythonRepr(const Json& value) {
  if (!value.is_string()) return PythonText(value);
  const auto text = value.get<std::string>();
  const char quote =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      if (c == '\\' || c == quote) out += '\\';
      out += c;
    }
  }
  return out + quote;
}

// A dictionary on the command line is a=1,b=2.
std::string ArgumentText(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_object()) return PythonText(value);
  std::vector<std::string> pairs;
  for (const auto& [key, item] : value.items()) pairs.push_back(key + "=" + PythonText(item));
  return Join(pairs, ",");
}

Param ParamOf(const std::string& name, const std::string& raw, const Json& value) {
  using Kind = Param::Kind;
  if (value.is_string()) return {name, value.get<std::string>(), Kind::kString};
  if (value.is_number()) return {name, raw, Kind::kNumber};
  if (value.is_boolean()) return {name, value.get<bool>() ? "true" : "false", Kind::kBool};
  if (value.is_null()) return {name, "null", Kind::kNull};
  return {name, DumpJson(value), Kind::kJson};
}

}  // namespace

std::string PythonText(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return PythonFloat(value.get<double>());
  std::vector<std::string> items;
  if (value.is_array()) {
    for (const auto& item : value) items.push_back(PythonRepr(item));
    return "[" + Join(items, ", ") + "]";
  }
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      items.push_back(PythonRepr(Json(key)) + ": " + PythonRepr(item));
    }
    return "{" + Join(items, ", ") + "}";
  }
  return value.dump();
}

HyperParameters ReadHyperParameters(const Json& map) {
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : map.items()) {
    if (value.is_string()) sorted[name] = value.get<std::string>();
  }
  HyperParameters read;
  for (const auto& [name, raw] : sorted) {
    auto parsed = Json::parse(raw, nullptr, false);
    const Json value = parsed.is_discarded() ? Json(raw) : parsed;
    if (StartsWith(name, "sagemaker_")) {
      read.platform[name] = value.is_string() ? value.get<std::string>() : raw;
    } else if (name != "_tuning_objective_metric") {
      read.params.push_back(ParamOf(name, raw, value));
      read.args.push_back((name.size() == 1 ? "-" : "--") + name);
      read.args.push_back(ArgumentText(value));
    }
  }
  return read;
}

}  // namespace athanor::sagemaker
