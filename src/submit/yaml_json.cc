#include <charconv>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/text/json.h"
#include "base/text/text.h"
#include "submit/job_keys.h"

namespace athanor {

std::string NumberText(std::string_view plain) {
  std::string text = ToLower(plain);
  if (text.find("inf") == std::string::npos && text.find("nan") == std::string::npos) {
    return std::string(plain);
  }
  return ReplaceAll(text, ".", "");
}

Json JsonOf(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kSequence: {
      Json list = Json::array();
      for (const auto& item : node.items) list.push_back(JsonOf(item));
      return list;
    }
    case YamlNode::Kind::kMap: {
      Json map = Json::object();
      for (const auto& entry : node.entries) map[entry.key] = JsonOf(entry.value);
      return map;
    }
    case YamlNode::Kind::kScalar:
      break;
  }
  switch (ScalarKindOf(node)) {
    case ScalarKind::kNull:
      return nullptr;
    case ScalarKind::kBool:
      return ToLower(node.text) == "true";
    case ScalarKind::kInt: {
      int64_t value = 0;
      const std::string_view digits = std::string_view(node.text).substr(node.text[0] == '+');
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (parsed.ec == std::errc()) return value;
      return std::strtod(node.text.c_str(), nullptr);
    }
    case ScalarKind::kFloat:
      return std::strtod(NumberText(node.text).c_str(), nullptr);
    case ScalarKind::kString:
      break;
  }
  return node.text;
}

}  // namespace athanor
