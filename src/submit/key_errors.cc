#include "submit/key_errors.h"

#include "base/text/format.h"
#include "base/text/text.h"
#include "submit/errors.h"

namespace athanor {
namespace {

using NodeKind = YamlNode::Kind;

std::string_view Describe(const YamlNode& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "nothing";
    case NodeKind::kScalar:
      return "a single value";
    case NodeKind::kSequence:
      return "a list";
    case NodeKind::kMap:
      return "a map";
  }
  return "";
}

}  // namespace

Status AtMark(const KeySource& source, YamlMark mark, Status status) {
  if (status.ok()) return status;
  Error error = std::move(status).error();
  if (error.where.empty()) error.where = WhereOf(source.file, mark);
  return Fail(std::move(error));
}

Status WrongKind(const KeySource& source, const YamlNode& node, std::string_view key,
                 std::string_view wanted) {
  // Names under env, data and similar have no row; the nearest one above has an example.
  const KeyRow* row = FindKey(key);
  for (std::string_view above = key; row == nullptr && !above.empty(); row = FindKey(above)) {
    const size_t cut = above.find_last_of(".[");
    above = cut == std::string_view::npos ? std::string_view() : above.substr(0, cut);
  }
  if (row == nullptr) row = FindKey("run");
  return AtMark(
      source, node.mark,
      Refuse("ATH-S0106", fmt::format("{} must be {}", key, wanted),
             node.kind == NodeKind::kScalar ? "got " + Quoted(node.text)
                                            : fmt::format("got {}", Describe(node)),
             fmt::format("write it like  {}: {}", row->path.substr(row->path.find_last_of('.') + 1),
                         row->example)));
}

Status BadValue(const KeySource& source, const YamlNode& node, std::string_view key,
                const Error& reason) {
  return AtMark(source, node.mark,
                Refuse("ATH-S0107", fmt::format("{} is {}", key, reason.what),
                       "got " + Quoted(node.text), reason.hint));
}

}  // namespace athanor
