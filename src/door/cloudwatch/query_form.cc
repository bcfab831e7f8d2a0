#include "door/cloudwatch/query_form.h"

#include <charconv>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/exec/clock.h"
#include "base/text/format.h"
#include "base/text/text.h"
#include "door/aws/xml.h"

namespace athanor {
namespace {

constexpr size_t kDeepest = 12;
constexpr uint64_t kLongestList = 10'000;
constexpr std::string_view kMember = "member";

struct Node {
  bool is_list = false;
  std::optional<std::string> text;
  std::map<std::string, Node, std::less<>> members;
  std::map<uint64_t, Node> items;
};

tl::unexpected<Error> Wrong(std::string_view name) {
  return Fail(ErrorCode::kInvalid,
              "the parameter " + Printable(name.substr(0, 100)) + " cannot be read");
}

Status Place(Node& root, std::string_view name, const std::string& value) {
  Node* node = &root;
  const auto parts = Split(name, '.');
  if (parts.size() > kDeepest) return Wrong(name);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty() || node->text) return Wrong(name);
    if (parts[i] != kMember) {
      if (node->is_list) return Wrong(name);
      node = &node->members[parts[i]];
      continue;
    }
    if (++i == parts.size() || !node->members.empty()) return Wrong(name);
    uint64_t number = 0;
    const char* end = parts[i].data() + parts[i].size();
    const auto [at, error] = std::from_chars(parts[i].data(), end, number);
    if (error != std::errc() || at != end || number > kLongestList) return Wrong(name);
    node->is_list = true;
    node = &node->items[number];
  }
  if (node->text || node->is_list || !node->members.empty()) return Wrong(name);
  node->text = value;
  return Ok();
}

Json Built(const Node& node) {
  if (node.text) return *node.text;
  if (node.is_list) {
    Json list = Json::array();
    for (const auto& [number, item] : node.items) list.push_back(Built(item));
    return list;
  }
  Json object = Json::object();
  for (const auto& [name, member] : node.members) object[name] = Built(member);
  return object;
}

bool IsTime(std::string_view name) { return name == "Timestamp" || name == "Timestamps"; }

// Milliseconds to seconds, in place.
void ToSeconds(Json& value, bool time) {
  if (value.is_object()) {
    for (auto& [name, member] : value.items()) ToSeconds(member, IsTime(name));
  } else if (value.is_array()) {
    for (auto& item : value) ToSeconds(item, time);
  } else if (time) {
    const auto ms = value.get<int64_t>();
    if (ms % 1000 == 0) {
      value = ms / 1000;
    } else {
      value = static_cast<double>(ms) / 1000;
    }
  }
}

std::string XmlOf(const Json& value, bool time) {
  std::string out;
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      out += "<" + name + ">" + XmlOf(member, IsTime(name)) + "</" + name + ">";
    }
  } else if (value.is_array()) {
    for (const auto& item : value) out += "<member>" + XmlOf(item, time) + "</member>";
  } else if (value.is_string()) {
    out = XmlEscape(value.get_ref<const std::string&>());
  } else if (time) {
    out = Rfc3339({value.get<int64_t>()});
  } else if (value.is_number_float()) {
    out = fmt::format("{}", value.get<double>());
  } else {
    out = value.dump();
  }
  return out;
}

}  // namespace

Result<Json> ObjectFromForm(const std::vector<std::pair<std::string, std::string>>& form) {
  Node root;
  for (const auto& [name, value] : form) {
    // Of the protocol and of a signed URL, not of the operation.
    if (name == "Action" || name == "Version" || StartsWith(name, "X-Amz-")) continue;
    ATHANOR_CHECK_OK(Place(root, name, value));
  }
  return root.is_list ? Json::object() : Built(root);
}

std::string MetricsJson(const Json& answer) {
  Json copy = answer;
  ToSeconds(copy, false);
  return DumpJson(copy);
}

std::string MetricsXml(const Json& answer) { return XmlOf(answer, false); }

}  // namespace athanor
